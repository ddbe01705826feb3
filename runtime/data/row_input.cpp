#include "runtime/data/row_input.hpp"

#include "runtime/tables/table_file.hpp"

#include <array>
#include <fstream>
#include <streambuf>
#include <utility>

namespace troupe::data {
namespace {

class PlainInput final : public RowInput {
 public:
  explicit PlainInput(std::ifstream file) : file_(std::move(file)) {}
  std::istream& in() override { return file_; }
  core::Result<void> state() const override { return {}; }

 private:
  std::ifstream file_;
};

// A buffer that is filled from a compressed file; a failure looks like the end and is kept.
class PackedBuffer final : public std::streambuf {
 public:
  explicit PackedBuffer(tables::PackedFile file) : file_(std::move(file)) {}
  const core::Result<void>& state() const { return state_; }

 protected:
  int_type underflow() override {
    if (!state_) return traits_type::eof();
    const auto got = file_.read(bytes_.data(), bytes_.size());
    if (!got) state_ = got.failure();
    if (!got || *got == 0) return traits_type::eof();
    setg(bytes_.data(), bytes_.data(), bytes_.data() + *got);
    return traits_type::to_int_type(bytes_[0]);
  }

 private:
  tables::PackedFile file_;
  core::Result<void> state_;
  std::array<char, 64 << 10> bytes_;
};

class PackedInput final : public RowInput {
 public:
  explicit PackedInput(tables::PackedFile file) : buffer_(std::move(file)), in_(&buffer_) {}
  std::istream& in() override { return in_; }
  core::Result<void> state() const override { return buffer_.state(); }

 private:
  PackedBuffer buffer_;
  std::istream in_;
};

}  // namespace

core::Result<std::unique_ptr<RowInput>> RowInput::open(const std::filesystem::path& file,
                                                       Packing packing) {
  if (packing != Packing::kNone) {
    const bool zstd = packing == Packing::kZstd;
    TROUPE_TRY_ASSIGN(packed, tables::PackedFile::open(file, zstd ? tables::PackedKind::kZstd
                                                                  : tables::PackedKind::kGzip));
    return std::unique_ptr<RowInput>(std::make_unique<PackedInput>(std::move(packed)));
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    return fail(ErrorCode::kData, file.string() + ": cannot be read", "check its permissions");
  }
  return std::unique_ptr<RowInput>(std::make_unique<PlainInput>(std::move(in)));
}

}  // namespace troupe::data
