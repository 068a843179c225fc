"""Top-down TreeLSTM and LdTreeLSTM, which generate a sentence along its dependency tree.

Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks",
https://aclanthology.org/N16-1035.
"""
