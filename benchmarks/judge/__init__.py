"""How right the judge is, against people's labels; and where its calibrated model comes from."""
