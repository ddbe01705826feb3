// Implements kernels/cuda/device.hpp: one stream, device memory with pinned staging for uploads and
// sharing between processes, and graphs. Errors of memory say how much was asked for.
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

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

// Makes a device the thread's present one until it is destroyed.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) {
    check(cudaGetDevice(&before_), "asking for the present device");
    changed_ = before_ != ordinal;
    if (changed_) check(cudaSetDevice(ordinal), "choosing the device");
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

// Pinned memory in two halves, through which copies between host and device go: the driver copies
// one half while the host fills or empties the other. Pinned once, used for the device's lifetime.
class Staging {
 public:
  static constexpr std::size_t kHalf_bytes = 4 << 20;

  ~Staging() {
    if (data_ == nullptr) return;
    for (cudaEvent_t event : done_)
      cudaEventDestroy(event);
    cudaFreeHost(data_);
  }

  // Room for `bytes`, at most kHalf_bytes, that no copy uses. Waits for the copies of a half on
  // `stream` before it is used again.
  char* take(std::size_t bytes, cudaStream_t stream) {
    if (data_ == nullptr) make();
    const std::size_t size = (bytes + 255) / 256 * 256;
    if (used_ + size > kHalf_bytes) turn(stream);
    char* const at = data_ + half_ * kHalf_bytes + used_;
    used_ += size;
    return at;
  }
  // Ends the present half: what was taken is in use until all work of `stream` up to now is done.
  // Returns the number of the half, for `wait_for`.
  std::size_t turn(cudaStream_t stream) {
    const std::size_t full = half_;
    check(cudaEventRecord(done_[full], stream), "copies of the device");
    half_ = 1 - half_;
    used_ = 0;
    wait_for(half_);
    return full;
  }
  void wait_for(std::size_t half) {
    check(cudaEventSynchronize(done_[half]), "copies of the device");
  }
  // Call it when all copies are done.
  void reset() { used_ = 0; }

 private:
  void make() {
    check(cudaMallocHost(reinterpret_cast<void**>(&data_), 2 * kHalf_bytes), "pinned memory");
    for (cudaEvent_t& event : done_)
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  }

  char* data_ = nullptr;
  std::array<cudaEvent_t, 2> done_{};
  std::size_t half_ = 0, used_ = 0;
};

class DeviceMemory final : public core::Memory {
 public:
  DeviceMemory(int ordinal, cudaStream_t stream)
      : ordinal_(ordinal), stream_(stream), name_("cuda:" + uuid_of(ordinal)) {}

  void* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    refuse_while_recording("memory is taken");
    const OnDevice here(ordinal_);  // any thread may call this
    void* memory = nullptr;
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
  // While a graph is recorded nothing can be freed: it is freed at the end.
  void release(void* memory, std::size_t) noexcept override {
    if (memory == nullptr) return;
    if (records_here())
      late_.push_back(memory);
    else
      cudaFree(memory);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    refuse_while_recording("data is copied to the device");
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, Staging::kHalf_bytes);
      char* const pinned = staging_.take(piece, stream_);
      std::memcpy(pinned, static_cast<const char*>(from) + done, piece);
      check(cudaMemcpyAsync(static_cast<char*>(to) + done, pinned, piece, cudaMemcpyHostToDevice,
                            stream_),
            "copy to the device");
      done += piece;
    }
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    refuse_while_recording("data is copied from the device");
    if (bytes > Staging::kHalf_bytes)
      download_in_pieces(to, from, bytes);
    else if (bytes > 0)
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
    const OnDevice here(ordinal_);
    cudaIpcMemHandle_t in{};
    std::memcpy(in.reserved, handle.data(), handle.size());
    void* memory = nullptr;
    if (cudaIpcOpenMemHandle(&memory, in, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
      return memory;
    refused();
    return nullptr;
  }
  void close_shared(void* memory) noexcept override { cudaIpcCloseMemHandle(memory); }

  // The calling thread begins to record a graph, or ends it.
  void begin_recording() { recorder_ = std::this_thread::get_id(); }
  void end_recording() noexcept {
    recorder_ = std::thread::id();
    for (void* const memory : late_)
      cudaFree(memory);
    late_.clear();
  }

 private:
  bool records_here() const noexcept { return recorder_.load() == std::this_thread::get_id(); }
  // The driver would give up the recording, and say so only at its end.
  void refuse_while_recording(const char* what) const {
    if (records_here()) throw core::DeviceError(std::string(what) + " while a graph is recorded");
  }
  // The driver fills one half while the host empties the other.
  void download_in_pieces(void* to, const void* from, std::size_t bytes) {
    struct Piece {
      char* pinned = nullptr;
      std::size_t at = 0, bytes = 0, half = 0;
    };
    const auto empty = [&](const Piece& piece) {
      if (piece.bytes == 0) return;
      staging_.wait_for(piece.half);
      std::memcpy(static_cast<char*>(to) + piece.at, piece.pinned, piece.bytes);
    };
    Piece before;
    for (std::size_t done = 0; done < bytes;) {
      Piece piece{nullptr, done, std::min(bytes - done, Staging::kHalf_bytes), 0};
      piece.pinned = staging_.take(piece.bytes, stream_);
      check(cudaMemcpyAsync(piece.pinned, static_cast<const char*>(from) + done, piece.bytes,
                            cudaMemcpyDeviceToHost, stream_),
            "copy from the device");
      empty(before);
      piece.half = staging_.turn(stream_);
      done += piece.bytes;
      before = piece;
    }
    empty(before);
  }
  // Clears the error, which the next launch would report again.
  static bool refused() {
    cudaGetLastError();
    return false;
  }

  const int ordinal_;
  const cudaStream_t stream_;
  const std::string name_;  // cached, because the driver is slow to return it
  Staging staging_;
  std::atomic<std::thread::id> recorder_{};  // of the thread that records a graph
  std::vector<void*> late_;                  // to be freed at its end
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

class OwnStream final : public Stream {
 public:
  explicit OwnStream(int ordinal) {
    const OnDevice here(ordinal);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() override { cudaStreamDestroy(stream_); }
  void* handle() const override { return stream_; }
  bool done() override {
    const cudaError_t code = cudaStreamQuery(stream_);
    if (code == cudaErrorNotReady) cudaGetLastError();  // else the next launch would report it
    if (code != cudaErrorNotReady) check(code, "work on the device");
    return code == cudaSuccess;
  }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal)
      : ordinal_(ordinal), stream_(make_stream(ordinal)), memory_(ordinal, stream_) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "asking for the device's properties");
    multiprocessors_ = properties.multiProcessorCount;
    shared_bytes_ = properties.sharedMemPerBlockOptin;
    check(cudaMalloc(&numbers_, kNumbersBytes), "device memory");
    workspace_.bytes = static_cast<std::size_t>(properties.l2CacheSize);
    workspace_.data = memory_.allocate(workspace_.bytes);
  }
  ~CudaDevice() override {
    if (entered.stream == stream_) entered = {};
    memory_.release(workspace_.data, workspace_.bytes);
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
    entered = {stream_, ordinal_, multiprocessors_, shared_bytes_, numbers_, workspace_};
  }
  void synchronize() override { memory_.wait(); }
  double mma_probe(std::int64_t rounds, float* sink) override {
    return cuda::mma_probe(rounds, sink);
  }
  void begin_recording() override {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording a graph");
    memory_.begin_recording();
  }
  std::unique_ptr<Graph> end_recording() override {
    cudaGraph_t graph = nullptr;
    const cudaError_t code = cudaStreamEndCapture(stream_, &graph);
    memory_.end_recording();
    check(code, "recording a graph");
    return std::make_unique<RecordedGraph>(graph, stream_);
  }
  void drop_recording() noexcept override {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    memory_.end_recording();
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // clears the error, which the next launch would report again
  }
  std::unique_ptr<Stream> open_stream() override { return std::make_unique<OwnStream>(ordinal_); }

 private:
  const int ordinal_;
  const cudaStream_t stream_;
  DeviceMemory memory_;
  int multiprocessors_ = 0;
  std::size_t shared_bytes_ = 0;
  void* numbers_ = nullptr;
  Workspace workspace_;
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

void allow_shared(const void* kernel, const char* name) {
  static std::mutex mutex;
  static std::set<std::pair<int, const void*>> allowed;
  const Current& device = current_device();
  const std::lock_guard lock(mutex);
  if (allowed.contains({device.ordinal, kernel})) return;
  cudaFuncAttributes facts{};
  check(cudaFuncGetAttributes(&facts, kernel), name);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(device.shared_bytes - facts.sharedSizeBytes)),
        name);
  allowed.insert({device.ordinal, kernel});
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
