"""What compiled parsers of text share: numbers to the last bit, eight bytes at a time, pieces ahead on all cores."""
