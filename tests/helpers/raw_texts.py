"""Raw texts: every combination of a sentence and an ending, and several sentences in a row."""

import random

BODIES = [
    "The cat saw a dog",
    "Nobody answered",
    "Mr. Smith of the U.S. met J. P. Day, Ph.D., at 5 p.m",
    "They don't, can't and won't; I'd've said it's the dogs' tails",
    "It cost $3.50, or 1,000% at 10:30 on 1990-95, 75.3 in all",
    "The cat (a tabby) slept [here] {now}",
    "She said \"no\" and “stay” and 'go'",
    "No. 5 of Smith & Co. left St. Louis, e.g. by train",
    "Wait... what—or so… he left",
    "see http://a.b/c_(d) or www.x.org, me@x.com",
]
ENDS = [
    *("", ".", "?", "!", "?!", "...", "…", " .", ";", ",", ":"),
    *('."', '".', ".”", "”.", ".'", "'.", ".''", '?"', '!"'),
    *(".)", ").", ".]", '.")', '.")"', "(!)", " U.S.", " etc.", " Inc.", " Jr.", " 3.5.", " a.m."),
]


def raw_texts() -> list[str]:
    """Texts of one sentence and of two to four sentences."""
    single = [body + end for body in BODIES for end in ENDS]
    draw = random.Random(0)
    several = [
        draw.choice([" ", "  ", " -- "]).join(draw.choices(single, k=draw.randint(2, 4)))
        for _ in range(200)
    ]
    return single + several
