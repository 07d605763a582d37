"""The data of the worked examples in three sets of lecture notes: Waterloo's e-mails, CMU's six points, IIIT-H's eight."""

import numpy as np

SPAM = np.array(
    [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]], float
)
SPAM_Y = np.array([1, -1, 1, -1, 1, -1])
SIX = np.array([[-1, 2], [1, 0], [1, 1], [-1, 0], [-1, -2], [1, -1]], float)
SIX_Y = np.array([-1, 1, 1, -1, -1, 1])
EIGHT = np.array([[1, 1], [1, 3], [2, 1], [2, 2], [-1, -1], [-1, -3], [-2, -1], [-2, -2]], float)
EIGHT_Y = np.array([1, 1, 1, 1, -1, -1, -1, -1])
