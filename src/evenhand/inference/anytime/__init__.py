"""Evidence that may be looked at after every batch: e-processes, confidence sequences, many questions at once."""
