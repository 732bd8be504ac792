"""Vision towers, encoders and projectors: from pixels to the decoder's stream."""
