"""Read files as rows and as sentences.

`formats` is the table of formats, and finds the reading for files. `svmlight`, `vw`, `tables` and `npy` read rows;
`conllu`, `columns` and `sentences` read sentences, and write them back byte for byte; `matrix` reads exact numbers.
"""
