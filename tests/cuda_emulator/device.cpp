#include "tests/cuda_emulator/device.hpp"

#include "tests/cuda_emulator/modes.hpp"
#include "tests/cuda_emulator/stream.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cstdio>
#include <string>

namespace troupe_emulator {
namespace {

constexpr std::size_t kGranule = 4096;

std::size_t memory_limit() {
  const char* text = std::getenv("TROUPE_CUDA_EMULATOR_MEMORY");
  return text == nullptr ? std::size_t{8} << 30 : std::strtoull(text, nullptr, 10);
}

}  // namespace

bool mode_has(std::string_view word) {
  return troupe_emulator::mode_has("TROUPE_CUDA_EMULATOR", word);
}
std::optional<std::uint64_t> mode_number(std::string_view word) {
  return troupe_emulator::mode_number("TROUPE_CUDA_EMULATOR", word);
}

void refuse(const char* what) {
  std::fprintf(stderr, "cuda emulator: %s\n", what);
  std::abort();
}

Device& Device::get() {
  static Device device;
  return device;
}

void Device::read_modes() {
  order_ = {mode_has("reverse") ? Order::Kind::kReverse : Order::Kind::kForward, 0};
  if (const auto seed = mode_number("random")) order_ = {Order::Kind::kRandom, *seed};
  fails_at_ = mode_number("fail");
  hangs_at_ = mode_number("hang");
  skips_ = mode_number("skip");
  grids_ = 0;
}

Device::Device() : limit_(memory_limit()) {
  read_modes();
  file_ = memfd_create("troupe_cuda_emulator", 0);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kArena)) != 0) std::abort();
  void* arena = mmap(reinterpret_cast<void*>(kBase), kArena, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file_, 0);
  if (arena == MAP_FAILED) std::abort();
  shared_.resize(227 * 1024 / sizeof(float));
}

cudaError_t Device::allocate(void** out, std::size_t bytes) {
  const std::size_t size = (bytes + kGranule - 1) / kGranule * kGranule;
  if (size == 0 || used_ + size > limit_) return cudaErrorMemoryAllocation;
  std::size_t offset = 0;  // first fit
  for (const auto& [begin, length] : taken_) {
    if (begin - offset >= size) break;
    offset = begin + length;
  }
  taken_[offset] = size;
  used_ += size;
  top_ = std::max(top_, offset + size);
  *out = reinterpret_cast<void*>(kBase + offset);
  open();
  std::memset(*out, 0xff, size);  // NaNs as floats: nobody may count on zeros
  close();
  return cudaSuccess;
}

// Whoever has a block of another process open holds a lock on its bytes in the file.
cudaError_t Device::release(void* memory) {
  const auto at = taken_.find(reinterpret_cast<std::uintptr_t>(memory) - kBase);
  if (at == taken_.end()) return cudaErrorInvalidValue;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(at->first);
  lock.l_len = static_cast<off_t>(at->second);
  if (fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
    refuse("memory is freed that another process has open");
  used_ -= at->second;
  taken_.erase(at);
  return cudaSuccess;
}

bool Device::owns(const void* p) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  return at >= kBase && at < kBase + kArena;
}

std::pair<std::size_t, std::size_t> Device::block_of(const void* p) const {
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(p) - kBase;
  auto after = taken_.upper_bound(offset);
  if (after == taken_.begin()) return {0, 0};
  --after;
  if (offset >= after->first + after->second) return {0, 0};
  return {after->first, after->second};
}

bool Device::is_pinned(const void* p) const {
  auto after = pinned_.upper_bound(p);
  if (after == pinned_.begin()) return false;
  --after;
  return static_cast<const char*>(p) < static_cast<const char*>(after->first) + after->second;
}

void Device::open() {
  if (guard_ && depth_++ == 0) protect(PROT_READ | PROT_WRITE);
}

void Device::close() {
  if (guard_ && --depth_ == 0) protect(PROT_NONE);
}

void Device::protect(int how) {
  if (top_ > 0) mprotect(reinterpret_cast<void*>(kBase), top_, how);
}

int compute_major = 9;

int capability_of(int device) {
  if (mode_number("older") == static_cast<std::uint64_t>(device)) return 80;
  return static_cast<int>(mode_number("sm").value_or(90));
}

void Device::run(const cudaLaunchConfig_t& config, const std::function<void()>& thread) {
  ++grids_;
  if (fails_at_ == grids_) broken = cudaErrorIllegalAddress;
  if (broken != cudaSuccess || skips_ == grids_) return;
  while (hangs_at_ == grids_)
    pause();
  const unsigned csr = _mm_getcsr();
  _mm_setcsr(csr | 0x8040);  // as nvcc's -ftz=true
  compute_major = capability_of(config.stream->device) / 10;
  const dim3 grid = config.gridDim;
  const unsigned blocks = grid.x * grid.y * grid.z;
  std::uint64_t dice = order_.seed;
  for (const unsigned at : in_order(blocks, order_, dice)) {
    const uint3 block{at % grid.x, at / grid.x % grid.y, at / grid.x / grid.y};
    std::fill_n(shared_.begin(), config.dynamicSmemBytes / sizeof(float) + 1, __builtin_nanf(""));
    dynamic_shared = reinterpret_cast<unsigned char*>(shared_.data());
    fibers_.run_block(config, block, thread, order_);
  }
  _mm_setcsr(csr);
}

}  // namespace troupe_emulator
