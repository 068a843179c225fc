"""The parsing-reading-predict network (Shen et al. 2018): its three networks as Keras layers.

Source: Shen, Lin, Huang and Courville 2018, "Neural Language Modeling by Jointly Learning Syntax
and Lexicon", https://openreview.net/forum?id=rkgOLb-0W. Where the published code differs from the
paper, the layers follow the code, which gave the published results.
"""

from keras_onlstm.prpn.parsing_network import ParsingNetwork
from keras_onlstm.prpn.predict_network import PredictNetwork
from keras_onlstm.prpn.reading_network import ReadingNetwork

__all__ = ["ParsingNetwork", "PredictNetwork", "ReadingNetwork"]
