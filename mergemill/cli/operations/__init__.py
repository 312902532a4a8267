"""Commands of operating a machine: db, doctor, gc, images, serve, skills, status."""
