"""Files become sentences one at a time, and sentences become files again, byte for byte."""
