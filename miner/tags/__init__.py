"""What a change is: rules with evidence, weighed together. `tag.py` is the way in, `routes.py` says where it goes."""
