"""Texts that are too many for one process: cut into shards, each of which is read and written once.

`shards` cuts files and reads them, `tasks` are what can be done with their rows, `corpus` has
processes do it. No Keras but in the models.
"""
