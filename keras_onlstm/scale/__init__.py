"""Large corpora, cut into shards that several processes read and write.

`shards` cuts and reads files, `tasks` defines what is done with their rows, `corpus` runs it in
several processes. Only the models use Keras.
"""
