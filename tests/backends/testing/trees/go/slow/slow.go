package slow
