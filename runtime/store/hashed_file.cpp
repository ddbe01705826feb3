#include "runtime/store/hashed_file.hpp"

#include <semaphore>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::store {
namespace {

constexpr std::size_t kPiece_bytes = std::size_t{4} << 20;    // hashed and written at a time
constexpr std::size_t kAlone_bytes = std::size_t{128} << 10;  // below this a hand-over costs more

}  // namespace

// The digest, and the thread that adds large pieces to it; it starts with the first of these.
class HashedFile::Hasher {
 public:
  ~Hasher() {
    if (!thread_.joinable()) return;
    data_ = nullptr;
    given_.release();
  }
  // Begins to add a piece, which stays as it is until the call of finish().
  void begin(const char* data, std::size_t bytes) {
    if (bytes < kAlone_bytes) return digest_.add(data, bytes);
    if (!thread_.joinable() && !try_thread()) return digest_.add(data, bytes);
    data_ = data;
    bytes_ = bytes;
    busy_ = true;
    given_.release();
  }
  void finish() {
    if (std::exchange(busy_, false)) taken_.acquire();
  }
  std::string hex() { return digest_.hex(); }

 private:
  // False when the system has no thread left.
  bool try_thread() {
    try {
      thread_ = std::jthread([this] { work(); });
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }
  void work() {
    for (;;) {
      given_.acquire();
      if (data_ == nullptr) return;
      digest_.add(data_, bytes_);
      taken_.release();
    }
  }

  Sha256 digest_;
  const char* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool busy_ = false;
  std::binary_semaphore given_{0}, taken_{0};
  std::jthread thread_;
};

HashedFile::HashedFile(AppendFile file)
    : file_(std::move(file)), hasher_(std::make_unique<Hasher>()) {}
HashedFile::HashedFile(HashedFile&&) noexcept = default;
HashedFile::~HashedFile() = default;

core::Result<HashedFile> HashedFile::create(const std::filesystem::path& path) {
  TROUPE_TRY_ASSIGN(file, AppendFile::create(path));
  return HashedFile(std::move(file));
}

core::Result<void> HashedFile::append(const void* data, std::size_t bytes) {
  std::string_view rest(static_cast<const char*>(data), bytes);
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, kPiece_bytes);
    hasher_->begin(piece.data(), piece.size());
    const auto written = file_.append(piece);
    hasher_->finish();
    TROUPE_TRY(written);
    bytes_ += piece.size();
    rest.remove_prefix(piece.size());
  }
  return {};
}

core::Result<FileDigest> HashedFile::close() {
  TROUPE_TRY(file_.close());
  return FileDigest{bytes_, hasher_->hex()};
}

}  // namespace troupe::store
