"""`python -m keras_onlstm` is the command `keras-onlstm`."""

from keras_onlstm.command_line import main

if __name__ == "__main__":
    main()
