// Example sentences. The page starts with the first one.

export const EXAMPLES = [
  "The company said it will sell its stake in the bank next year.",
  "Investors who bought the shares last year lost a lot of money.",
  "He didn't go home because it was raining.",
  "The old man the boats.",
  "Colorless green ideas sleep furiously.",
  "Mr. Smith met J.P. Day at 5 p.m. in New York. They left the next day.",
  "The man the woman the child saw knew slept.",
  "What the president of the board wants is more time, not more money.",
  "Prices fell 3.5% to $1,200 after the report, but volume rose.",
  "I think that you know that she said that he left.",
  "ذهب الولد إلى المدرسة أمس",
];
