// The runtime calls: memory that is one file-backed arena at a fixed address, streams whose work is
// done when somebody waits, graphs that are lists of work.
#include "tests/cuda_emulator/fibers.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

using Work = std::function<void()>;

constexpr std::uintptr_t kBase = 0x200000000000;
constexpr std::size_t kArena = std::size_t{64} << 30;
constexpr std::size_t kGranule = 4096;

bool mode_has(const char* word) {
  const char* mode = std::getenv("TROUPE_CUDA_EMULATOR");
  return mode != nullptr && std::strstr(mode, word) != nullptr;
}

std::size_t memory_limit() {
  const char* text = std::getenv("TROUPE_CUDA_EMULATOR_MEMORY");
  return text == nullptr ? std::size_t{8} << 30 : std::strtoull(text, nullptr, 10);
}

// One device for the process. Everything is done under its lock.
class Device {
 public:
  static Device& get() {
    static Device device;
    return device;
  }

  cudaError_t allocate(void** out, std::size_t bytes) {
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
    std::memset(*out, 0x7f, size);  // a NaN as float: nobody may count on zeros
    close();
    return cudaSuccess;
  }
  cudaError_t release(void* memory) {
    const auto at = taken_.find(reinterpret_cast<std::uintptr_t>(memory) - kBase);
    if (at == taken_.end()) return cudaErrorInvalidValue;
    used_ -= at->second;
    taken_.erase(at);
    return cudaSuccess;
  }
  bool owns(const void* p) const {
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    return at >= kBase && at < kBase + kArena;
  }
  // The block of memory that an address lies in; 0 bytes when in none.
  std::pair<std::size_t, std::size_t> block_of(const void* p) const {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(p) - kBase;
    auto after = taken_.upper_bound(offset);
    if (after == taken_.begin()) return {0, 0};
    --after;
    if (offset >= after->first + after->second) return {0, 0};
    return {after->first, after->second};
  }
  void open() {
    if (guard_ && depth_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    if (guard_ && --depth_ == 0) protect(PROT_NONE);
  }

  std::recursive_mutex mutex;
  std::set<const void*> pinned;
  troupe_emulator::Fibers fibers;
  std::vector<float> shared;
  int file = -1;
  bool reverse = mode_has("reverse");
  std::size_t used() const { return used_; }
  std::size_t limit() const { return limit_; }

 private:
  Device() {
    file = memfd_create("troupe_cuda_emulator", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(kArena)) != 0) std::abort();
    void* arena = mmap(reinterpret_cast<void*>(kBase), kArena, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
    if (arena == MAP_FAILED) std::abort();
    shared.resize(227 * 1024 / sizeof(float));
  }
  void protect(int how) {
    if (top_ > 0) mprotect(reinterpret_cast<void*>(kBase), top_, how);
  }

  std::map<std::size_t, std::size_t> taken_;  // offset, bytes
  std::size_t used_ = 0, top_ = 0;
  const std::size_t limit_ = memory_limit();
  const bool guard_ = mode_has("guard");
  int depth_ = 0;
};

using Lock = std::lock_guard<std::recursive_mutex>;

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "cuda emulator: %s\n", what);
  std::abort();
}

void run_grid(const cudaLaunchConfig_t& config, const Work& thread) {
  Device& device = Device::get();
  const unsigned csr = _mm_getcsr();
  _mm_setcsr(csr | 0x8040);  // as nvcc's -ftz=true
  const dim3 grid = config.gridDim;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t at = device.reverse ? blocks - 1 - i : i;
    const uint3 block{static_cast<unsigned>(at % grid.x),
                      static_cast<unsigned>(at / grid.x % grid.y),
                      static_cast<unsigned>(at / grid.x / grid.y)};
    std::fill_n(device.shared.begin(), config.dynamicSmemBytes / sizeof(float) + 1,
                __builtin_nanf(""));
    troupe_emulator::dynamic_shared = reinterpret_cast<unsigned char*>(device.shared.data());
    device.fibers.run_block(config, block, thread, device.reverse);
  }
  _mm_setcsr(csr);
}

}  // namespace

struct troupe_emulator_graph {
  std::vector<Work> work;
};

struct troupe_emulator_stream {
  std::vector<Work> waiting;
  std::unique_ptr<troupe_emulator_graph> recording;

  void add(Work work) { (recording ? recording->work : waiting).push_back(std::move(work)); }
  void finish() {
    Device::get().open();
    for (std::size_t i = 0; i < waiting.size(); ++i)
      waiting[i]();
    waiting.clear();
    Device::get().close();
  }
};

namespace {

std::vector<troupe_emulator_stream*>& streams() {
  static std::vector<troupe_emulator_stream*> all;
  return all;
}

}  // namespace

namespace troupe_emulator {

std::size_t shared_limit() {
  static const std::size_t limit = (mode_has("small") ? 99 : 227) * std::size_t{1024};
  return limit;
}

cudaError_t submit(const cudaLaunchConfig_t& config, std::function<void()> thread) {
  const dim3 block = config.blockDim;
  const unsigned threads = block.x * block.y * block.z;
  if (threads == 0 || threads > 1024 || config.gridDim.y > 65535 || config.gridDim.z > 65535 ||
      config.dynamicSmemBytes > shared_limit() || config.stream == nullptr)
    return cudaErrorInvalidValue;
  const Lock lock(Device::get().mutex);
  config.stream->add([config, thread = std::move(thread)] { run_grid(config, thread); });
  return cudaSuccess;
}

// An argument that looks like a pointer must point into the device.
void check_argument(const void* bytes, std::size_t size) {
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(bytes) + i, 8);
    const std::uint64_t high = word >> 32;
    const bool host = (high >= 0x5500 && high < 0x5700) || (high >= 0x7e00 && high < 0x8000);
    if (host) refuse("a kernel is given a pointer to the host's memory");
  }
}

}  // namespace troupe_emulator

cudaError_t cudaGetDeviceCount(int* count) {
  *count = mode_has("none") ? 0 : 1;
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (device != 0) return cudaErrorInvalidDevice;
  *out = {};
  std::strcpy(out->name, "emulated CUDA device");
  out->totalGlobalMem = Device::get().limit();
  out->major = 9;
  out->multiProcessorCount = 4;
  out->l2CacheSize = 1 << 20;
  out->sharedMemPerBlockOptin = troupe_emulator::shared_limit();
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* yes, int, int) {
  return *yes = 0, cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  return *version = 13000, cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  return *version = 13000, cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Lock lock(Device::get().mutex);
  *total = Device::get().limit();
  *free = *total - Device::get().used();
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "invalid argument";
  }
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  const Lock lock(Device::get().mutex);
  return Device::get().allocate(out, bytes);
}
cudaError_t cudaFree(void* memory) {
  const Lock lock(Device::get().mutex);
  for (troupe_emulator_stream* stream : streams())
    stream->finish();
  return memory == nullptr ? cudaSuccess : Device::get().release(memory);
}
cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  const Lock lock(Device::get().mutex);
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*out == nullptr) return cudaErrorMemoryAllocation;
  Device::get().pinned.insert(*out);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Lock lock(Device::get().mutex);
  Device::get().pinned.erase(memory);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  const Lock lock(Device::get().mutex);
  streams().push_back(*out = new troupe_emulator_stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  stream->finish();
  std::erase(streams(), stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  if (stream->recording) return cudaErrorStreamCaptureUnsupported;
  stream->finish();
  return cudaSuccess;
}
// Pinned memory is read when its turn comes, other memory at once: as a device does.
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Device& device = Device::get();
  const Lock lock(device.mutex);
  const bool from_host = kind == cudaMemcpyHostToDevice, to_host = kind == cudaMemcpyDeviceToHost;
  if (device.owns(from) == from_host || device.owns(to) == to_host) return cudaErrorInvalidValue;
  const auto near = device.pinned.upper_bound(from);
  const bool maybe_pinned = from_host && near != device.pinned.begin();
  if (from_host && !maybe_pinned && !stream->recording) {
    auto copy = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                    static_cast<const char*>(from) + bytes);
    stream->add([to, copy] { std::memcpy(to, copy->data(), copy->size()); });
    return cudaSuccess;
  }
  stream->add([to, from, bytes] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  if (!Device::get().owns(to)) return cudaErrorInvalidValue;
  stream->add([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(Device::get().mutex);
  stream->recording = std::make_unique<troupe_emulator_graph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(Device::get().mutex);
  if (!stream->recording) return cudaErrorInvalidValue;
  *graph = stream->recording.release();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  *out = new troupe_emulator_graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  for (const Work& work : graph->work)
    stream->add(work);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return delete graph, cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return delete graph, cudaSuccess;
}

namespace {

struct Handle {
  std::int32_t pid, file;
  std::uint64_t offset, bytes;
};
std::map<void*, std::size_t>& opened() {
  static std::map<void*, std::size_t> all;
  return all;
}

}  // namespace

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* out, void* memory) {
  const Lock lock(Device::get().mutex);
  const auto [offset, bytes] = Device::get().block_of(memory);
  if (bytes == 0) return cudaErrorInvalidValue;
  const Handle handle{getpid(), Device::get().file, offset, bytes};
  std::memcpy(out->reserved, &handle, sizeof(handle));
  return cudaSuccess;
}
// The other process's memory appears inside our arena, as peer memory does in the device's range.
cudaError_t cudaIpcOpenMemHandle(void** out, cudaIpcMemHandle_t from, unsigned) {
  Handle handle;
  std::memcpy(&handle, from.reserved, sizeof(handle));
  if (handle.pid == getpid()) return cudaErrorInvalidValue;  // as CUDA: not in the same process
  const std::string path =
      "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR);
  if (file < 0) return cudaErrorInvalidValue;
  const Lock lock(Device::get().mutex);
  if (Device::get().allocate(out, handle.bytes) != cudaSuccess) return cudaErrorMemoryAllocation;
  void* mapped = mmap(*out, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                      static_cast<off_t>(handle.offset));
  close(file);
  opened()[*out] = handle.bytes;
  return mapped == MAP_FAILED ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  const Lock lock(Device::get().mutex);
  const auto at = opened().find(memory);
  if (at == opened().end()) return cudaErrorInvalidValue;
  const auto offset = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory) - kBase);
  for (troupe_emulator_stream* stream : streams())
    stream->finish();
  mmap(memory, at->second, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, Device::get().file,
       offset);
  opened().erase(at);
  return Device::get().release(memory);
}
