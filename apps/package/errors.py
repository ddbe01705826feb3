"""The one kind of error of packing: what is wrong and what to do, in one line."""


class PackageError(Exception):
    pass
