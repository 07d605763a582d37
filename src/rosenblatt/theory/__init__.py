"""The theorems and the measures of the field as things that run: they judge learners, and import none."""
