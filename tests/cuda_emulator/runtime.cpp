// The runtime calls: streams whose work is done when somebody waits or asks, graphs that are lists
// of work, memory that other processes can open.
#include "tests/cuda_emulator/device.hpp"
#include "tests/cuda_emulator/stream.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

using troupe_emulator::Device;
using troupe_emulator::kBase;
using troupe_emulator::mode_has;
using troupe_emulator::mode_number;
using troupe_emulator::present_device;
using troupe_emulator::refuse;
using troupe_emulator::streams;
using troupe_emulator::Work;

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr std::size_t kSharedAlways = 48 * 1024;

thread_local troupe_emulator_stream* captured = nullptr;  // by this thread

// Why a call cannot be made now. `allowed`: also while this thread records a graph.
cudaError_t obstacle(bool allowed = false) {
  if (Device::get().broken != cudaSuccess) return Device::get().broken;
  if (captured == nullptr || allowed) return cudaSuccess;
  captured->spoilt = true;
  return cudaErrorStreamCaptureUnsupported;
}

}  // namespace

struct troupe_emulator_event {
  troupe_emulator_stream* stream = nullptr;
};

namespace troupe_emulator {

thread_local int present_device = 0;

std::vector<troupe_emulator_stream*>& streams() {
  static std::vector<troupe_emulator_stream*> all;
  return all;
}

std::size_t shared_limit() {
  static const std::size_t limit = (mode_has("small") ? 99 : 227) * std::size_t{1024};
  return limit;
}

cudaError_t submit(const cudaLaunchConfig_t& config,
                   const void* kernel,
                   std::function<void()> thread) {
  const dim3 block = config.blockDim;
  const unsigned threads = block.x * block.y * block.z;
  if (threads == 0 || threads > 1024 || config.gridDim.y > 65535 || config.gridDim.z > 65535 ||
      config.dynamicSmemBytes > shared_limit() || config.stream == nullptr)
    return cudaErrorInvalidValue;
  Device& device = Device::get();
  const Lock lock(device.mutex);
  if (const cudaError_t why = obstacle(true); why != cudaSuccess) return why;
  if (config.stream->device != present_device) return cudaErrorInvalidResourceHandle;
  const auto most = device.shared_most.find(kernel);
  const std::size_t may = most == device.shared_most.end() ? kSharedAlways : most->second;
  if (config.dynamicSmemBytes > may) return cudaErrorInvalidValue;
  config.stream->add([config, thread = std::move(thread)] { Device::get().run(config, thread); });
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

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  const Lock lock(Device::get().mutex);
  const auto size = static_cast<std::size_t>(bytes);
  if (size > troupe_emulator::shared_limit()) return cudaErrorInvalidValue;
  Device::get().shared_most[kernel] = size;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  return *out = {}, cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = mode_has("none") ? 0 : static_cast<int>(mode_number("devices").value_or(1));
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  present_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  return *device = present_device, cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  *out = {};
  std::strcpy(out->name, "emulated CUDA device");
  out->uuid.bytes[0] = static_cast<char>(device);
  out->totalGlobalMem = Device::get().limit();
  out->major = troupe_emulator::capability_of(device) / 10;
  out->minor = troupe_emulator::capability_of(device) % 10;
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
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
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
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "invalid argument";
  }
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
  return Device::get().allocate(out, bytes);
}
cudaError_t cudaFree(void* memory) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
  for (troupe_emulator_stream* stream : streams())
    stream->finish();
  return memory == nullptr ? cudaSuccess : Device::get().release(memory);
}
cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*out == nullptr) return cudaErrorMemoryAllocation;
  Device::get().pin(*out, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
  for (troupe_emulator_stream* stream : streams())
    stream->finish();
  Device::get().unpin(memory);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(true); why != cudaSuccess) return why;
  streams().push_back(*out = new troupe_emulator_stream);
  (*out)->device = present_device;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  if (!stream->advance()) refuse("a stream is destroyed while a library works on it");
  std::erase(streams(), stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
  if (stream->recording) return cudaErrorStreamCaptureUnsupported;
  if (!stream->advance()) return cudaErrorNotReady;
  return Device::get().broken;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
  if (stream->recording) return cudaErrorStreamCaptureUnsupported;
  stream->finish();
  return Device::get().broken;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  return *out = new troupe_emulator_event, cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return delete event, cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(true); why != cudaSuccess) return why;
  event->stream = stream;
  return cudaSuccess;
}
// Waits for what came after the event, too.
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->stream == nullptr ? cudaSuccess : cudaStreamSynchronize(event->stream);
}
// Pinned memory is read when its turn comes, other memory at once: as a device does.
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Device& device = Device::get();
  const Lock lock(device.mutex);
  if (const cudaError_t why = obstacle(true); why != cudaSuccess) return why;
  const bool from_host = kind == cudaMemcpyHostToDevice, to_host = kind == cudaMemcpyDeviceToHost;
  if (device.owns(from) == from_host || device.owns(to) == to_host) return cudaErrorInvalidValue;
  stream->uses(from);
  stream->uses(to);
  if (from_host && !device.is_pinned(from) && !stream->recording) {
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
  if (const cudaError_t why = obstacle(true); why != cudaSuccess) return why;
  if (!Device::get().owns(to)) return cudaErrorInvalidValue;
  stream->uses(to);
  stream->add([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(); why != cudaSuccess) return why;
  stream->recording = std::make_unique<troupe_emulator_graph>();
  stream->spoilt = false;
  captured = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(Device::get().mutex);
  if (captured == stream) captured = nullptr;
  if (!stream->recording) return cudaErrorInvalidValue;
  *graph = stream->recording.release();
  if (!stream->spoilt) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return cudaErrorStreamCaptureInvalidated;
}
// The driver looks at the memory of copies, and crashes where it was freed.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  for (const void* const memory : graph->copied)
    if (Device::get().block_of(memory).second == 0) refuse("a graph copies memory that was freed");
  *out = new troupe_emulator_graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Lock lock(Device::get().mutex);
  if (const cudaError_t why = obstacle(true); why != cudaSuccess) return why;
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
// Memory of other processes: bytes, and the file with the lock.
struct Opened {
  std::size_t bytes = 0;
  int file = -1;
};
std::map<void*, Opened>& opened() {
  static std::map<void*, Opened> all;
  return all;
}

}  // namespace

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* out, void* memory) {
  const Lock lock(Device::get().mutex);
  const auto [offset, bytes] = Device::get().block_of(memory);
  if (bytes == 0) return cudaErrorInvalidValue;
  const Handle handle{getpid(), Device::get().file(), offset, bytes};
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
  // As long as it is open, its owner may not free it.
  struct flock open_here {};
  open_here.l_type = F_RDLCK;
  open_here.l_whence = SEEK_SET;
  open_here.l_start = static_cast<off_t>(handle.offset);
  open_here.l_len = static_cast<off_t>(handle.bytes);
  fcntl(file, F_OFD_SETLK, &open_here);
  opened()[*out] = {handle.bytes, file};
  return mapped == MAP_FAILED ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  const Lock lock(Device::get().mutex);
  const auto at = opened().find(memory);
  if (at == opened().end()) return cudaErrorInvalidValue;
  const auto offset = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory) - kBase);
  for (troupe_emulator_stream* stream : streams())
    stream->finish();
  close(at->second.file);
  mmap(memory, at->second.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
       Device::get().file(), offset);
  opened().erase(at);
  return Device::get().release(memory);
}
