// Implements kernels/cuda/device.hpp: one stream, device memory with pinned staging for uploads and
// sharing between processes, and graphs. Errors of memory say how much was asked for.
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"

#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>

namespace troupe::kernels::cuda {
namespace {

// The device that the thread has entered.
thread_local Current entered;

std::string gib(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

std::string uuid_of(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "asking for the device's properties");
  std::string text;
  for (const char byte : properties.uuid.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

// Pinned memory for small uploads, which then need not wait until the source has been read. It is
// filled from front to back while copies from it may be in flight, and starts over when all are
// done.
class Staging {
 public:
  ~Staging() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }
  // Room for `bytes`; null for more than half of the memory. Waits for `stream` when it is full.
  void* take(std::size_t bytes, cudaStream_t stream) {
    if (bytes > kBytes / 2) return nullptr;
    if (data_ == nullptr)
      check(cudaMallocHost(reinterpret_cast<void**>(&data_), kBytes), "pinned memory");
    const std::size_t size = (bytes + 255) / 256 * 256;
    if (used_ + size > kBytes) {
      check(cudaStreamSynchronize(stream), "copies to the device");
      used_ = 0;
    }
    void* const at = data_ + used_;
    used_ += size;
    return at;
  }
  // Call it when all copies are done.
  void reset() { used_ = 0; }

 private:
  static constexpr std::size_t kBytes = 8 << 20;
  char* data_ = nullptr;
  std::size_t used_ = 0;
};

class DeviceMemory final : public core::Memory {
 public:
  DeviceMemory(int ordinal, cudaStream_t stream)
      : ordinal_(ordinal), stream_(stream), name_("cuda:" + uuid_of(ordinal)) {}

  void* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    check(cudaSetDevice(ordinal_), "choosing the device");
    void* memory = nullptr;
    check(cudaSetDevice(ordinal_), "choosing the device");  // any thread may call this
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
      cudaGetLastError();  // clears the error, which the next launch would report again
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      throw core::OutOfMemory("device cuda:" + std::to_string(ordinal_) + " has " + gib(free) +
                              " free of " + gib(total) + ", and " + gib(bytes) +
                              " more are needed");
    }
    check(cudaMemsetAsync(memory, 0, bytes, stream_), "zeroing device memory");
    return memory;
  }
  void release(void* memory, std::size_t) noexcept override {
    if (memory != nullptr) cudaFree(memory);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    void* const pinned = recording_ ? nullptr : staging_.take(bytes, stream_);
    if (pinned != nullptr) std::memcpy(pinned, from, bytes);
    check(cudaMemcpyAsync(to, pinned != nullptr ? pinned : from, bytes, cudaMemcpyHostToDevice,
                          stream_),
          "copy to the device");
    if (pinned == nullptr) check(cudaStreamSynchronize(stream_), "copy to the device");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0)
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
            "copy from the device");
    wait();
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
          "copy on the device");
  }
  bool on_host() const noexcept override { return false; }
  void wait() override {
    check(cudaStreamSynchronize(stream_), "work on the device");
    staging_.reset();
  }
  std::string shared_name() const override { return name_; }
  bool share(const void* memory, SharedHandle& handle) override {
    cudaIpcMemHandle_t out{};
    if (cudaIpcGetMemHandle(&out, const_cast<void*>(memory)) != cudaSuccess) return refused();
    static_assert(sizeof(out.reserved) == std::tuple_size_v<SharedHandle>);
    std::memcpy(handle.data(), out.reserved, handle.size());
    return true;
  }
  void* open_shared(const SharedHandle& handle) override {
    check(cudaSetDevice(ordinal_), "choosing the device");
    cudaIpcMemHandle_t in{};
    std::memcpy(in.reserved, handle.data(), handle.size());
    void* memory = nullptr;
    if (cudaIpcOpenMemHandle(&memory, in, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
      return memory;
    refused();
    return nullptr;
  }
  void close_shared(void* memory) noexcept override { cudaIpcCloseMemHandle(memory); }

  void set_recording(bool recording) { recording_ = recording; }

 private:
  // Clears the error, which the next launch would report again.
  static bool refused() {
    cudaGetLastError();
    return false;
  }

  const int ordinal_;
  const cudaStream_t stream_;
  const std::string name_;  // cached, because the driver is slow to return it
  Staging staging_;
  bool recording_ = false;
};

class RecordedGraph final : public Graph {
 public:
  RecordedGraph(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    const cudaError_t code = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(code, "making a graph");
  }
  ~RecordedGraph() override { cudaGraphExecDestroy(executable_); }
  void launch() override { check(cudaGraphLaunch(executable_, stream_), "launch of a graph"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
  const cudaStream_t stream_;
};

cudaStream_t make_stream(int ordinal) {
  check(cudaSetDevice(ordinal), "choosing the device");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return stream;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal)
      : ordinal_(ordinal), stream_(make_stream(ordinal)), memory_(ordinal, stream_) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "asking for the device's properties");
    multiprocessors_ = properties.multiProcessorCount;
    shared_bytes_ = properties.sharedMemPerBlockOptin;
    check(cudaMalloc(&numbers_, kNumbersBytes), "device memory");
  }
  ~CudaDevice() override {
    if (entered.stream == stream_) entered = {};
    cudaFree(numbers_);
    cudaStreamDestroy(stream_);
  }
  DeviceInfo info() const override {
    DeviceInfo info;
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "asking for the device's properties");
    std::snprintf(info.name, sizeof(info.name), "%s", properties.name);
    info.ordinal = ordinal_;
    info.major = properties.major;
    info.minor = properties.minor;
    info.multiprocessors = properties.multiProcessorCount;
    info.l2_bytes = static_cast<std::uint64_t>(properties.l2CacheSize);
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for the device's memory");
    info.memory_bytes = total;
    info.free_bytes = free;
    cudaDriverGetVersion(&info.driver_version);
    cudaRuntimeGetVersion(&info.runtime_version);
    return info;
  }
  bool reaches(int other) const override {
    int yes = 0;
    check(cudaDeviceCanAccessPeer(&yes, ordinal_, other), "asking for peer access");
    return yes != 0;
  }
  core::Memory& memory() override { return memory_; }
  const Ops& ops() const override { return table(); }
  void enter() override {
    check(cudaSetDevice(ordinal_), "choosing the device");
    entered = {stream_, multiprocessors_, shared_bytes_, numbers_};
  }
  void synchronize() override { memory_.wait(); }
  double mma_probe(std::int64_t rounds, float* sink) override {
    return cuda::mma_probe(rounds, sink);
  }
  void begin_recording() override {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording a graph");
    memory_.set_recording(true);
  }
  std::unique_ptr<Graph> end_recording() override {
    cudaGraph_t graph = nullptr;
    memory_.set_recording(false);
    check(cudaStreamEndCapture(stream_, &graph), "recording a graph");
    return std::make_unique<RecordedGraph>(graph, stream_);
  }
  void drop_recording() noexcept override {
    cudaGraph_t graph = nullptr;
    memory_.set_recording(false);
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // clears the error, which the next launch would report again
  }

 private:
  const int ordinal_;
  const cudaStream_t stream_;
  DeviceMemory memory_;
  int multiprocessors_ = 0;
  std::size_t shared_bytes_ = 0;
  void* numbers_ = nullptr;
};

cudaError_t last_count = cudaSuccess;

int device_count() {
  int count = 0;
  last_count = cudaGetDeviceCount(&count);
  if (last_count != cudaSuccess) cudaGetLastError();
  return last_count == cudaSuccess ? count : 0;
}
const char* why_none() {
  return cudaGetErrorString(last_count);
}
Device* open(int ordinal) {
  return new CudaDevice(ordinal);
}

}  // namespace

const Current& current_device() {
  if (entered.stream == nullptr) throw core::DeviceError("no device was entered on this thread");
  return entered;
}
cudaStream_t current_stream() {
  return current_device().stream;
}

void read_numbers(void* to, std::size_t bytes) {
  const Current& device = current_device();
  check(cudaMemcpyAsync(to, device.numbers, bytes, cudaMemcpyDeviceToHost, device.stream),
        "copy from the device");
  check(cudaStreamSynchronize(device.stream), "work on the device");
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  const std::string text = std::string(what) + ": " + cudaGetErrorString(code);
  if (code == cudaErrorMemoryAllocation) throw core::OutOfMemory(text);
  throw core::DeviceError(text);
}

}  // namespace troupe::kernels::cuda

extern "C" __attribute__((visibility("default")))
const troupe::kernels::cuda::Entry troupe_cuda_entry = {
    troupe::kernels::cuda::kAbi, troupe::kernels::cuda::device_count,
    troupe::kernels::cuda::why_none, troupe::kernels::cuda::open};
