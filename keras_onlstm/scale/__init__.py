"""Texts that are too many for one process: cut into shards, each of which is read and written once.

`shards` cuts files and reads them, `corpus` has processes parse them. No Keras but in the parser.
"""
