"""Archives whose bytes depend on what is packed alone: sorted names, one time, one owner, two modes."""
import gzip
import os
import tarfile
import time
import zipfile


def files_below(folder):
    """Relative names and paths of all files, sorted by name."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sorted((path.relative_to(folder).as_posix(), path) for path in found)


def mode_of(path):
    return 0o755 if os.access(path, os.X_OK) and path.stat().st_mode & 0o111 else 0o644


def write_tar_gz(target, folder, top, epoch, level):
    """`folder` as the folder `top` of an archive."""
    with open(target, "wb") as file, \
            gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=file, mtime=epoch) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in files_below(folder):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, epoch, mode_of(path)
            entry.uname = entry.gname = "root"
            with open(path, "rb") as content:
                tar.addfile(entry, content)


def add_to_zip(archive, name, content, mode, epoch, level):
    entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
    entry.create_system = 3  # Unix, where modes are kept
    entry.external_attr = (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=level)
