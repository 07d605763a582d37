"""What compiled parsers of text share: exact numbers, eight bytes at a time, all cores at once, the line parser."""
