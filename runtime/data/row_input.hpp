// The bytes of a file of rows as a standard stream, unpacked if they are compressed. Internal to
// this room; one owner, one thread.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>

namespace troupe::data {

enum class Packing { kNone, kGzip, kZstd };

class RowInput {
 public:
  // Errors (naming the file): kData (cannot be read), and those of tables::PackedFile.
  static core::Result<std::unique_ptr<RowInput>> open(const std::filesystem::path& file,
                                                      Packing packing);
  virtual ~RowInput() = default;

  virtual std::istream& in() = 0;
  // Why the stream ended before the end of the file, if it did.
  virtual core::Result<void> state() const = 0;
};

}  // namespace troupe::data
