// A file that is written from its start to its end and hashed on the way, so that it need not be
// read it again to know its digest. A thread of its own hashes a large piece while the piece is
// written. One thread uses a HashedFile; its destructor closes the file.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/sha256.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>

namespace troupe::store {

class HashedFile {
 public:
  // Creates the file, or empties it if it exists. Its folder must exist.
  static core::Result<HashedFile> create(const std::filesystem::path& path);
  HashedFile(HashedFile&&) noexcept;
  ~HashedFile();

  // Errors, here and below: those of AppendFile; the file is then of no use.
  core::Result<void> append(const void* data, std::size_t bytes);
  // Waits until everything appended is on disk.
  core::Result<void> sync() { return file_.sync(); }
  // Closes the file, and returns the digest of all that was appended. Once.
  core::Result<FileDigest> close();

 private:
  class Hasher;
  explicit HashedFile(AppendFile file);

  AppendFile file_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<Hasher> hasher_;
};

}  // namespace troupe::store
