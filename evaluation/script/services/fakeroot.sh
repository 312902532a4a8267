# The tests appear to run as root: they may change owners and make devices, in the eyes of their own processes alone; the
# user and its rights stay; changes the command, from start_fakeroot.
    command=(fakeroot -- "${command[@]}")
