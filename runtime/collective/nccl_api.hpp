// The part of NCCL's interface that we use, so that neither a header nor a library of NCCL is
// needed to build. The types and values are those of nccl.h, against which a test compares them.
#pragma once

#include <climits>
#include <cstddef>

namespace troupe::collective::nccl {

struct Communicator;  // what ncclComm_t points to

enum class Code : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum class DataType : int { kInt8 = 0, kUint8 = 1 };

struct UniqueId {
  char bytes[128];
};

inline constexpr int kUndefined = INT_MIN;
inline constexpr unsigned kConfigMagic = 0xcafebeef;

// ncclConfig_t as of 2.17. Newer libraries take it by its size and version, and know that what
// they added is not set.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = kConfigMagic;
  unsigned version = 21700;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined, ctas_min = kUndefined, ctas_max = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int unused = kUndefined;  // padding in 2.17, a setting in later versions
};
static_assert(sizeof(Config) == 48);

inline constexpr int kOldest = 21700;  // the library must have at least this version

// The entry points, by the names that the library has for them.
#define TROUPE_NCCL_ENTRIES(ENTRY)                                                              \
  ENTRY(Code, ncclGetVersion, (int* version))                                                   \
  ENTRY(const char*, ncclGetErrorString, (Code))                                                \
  ENTRY(const char*, ncclGetLastError, (Communicator*))                                         \
  ENTRY(Code, ncclGetUniqueId, (UniqueId*))                                                     \
  ENTRY(Code, ncclCommInitRankConfig, (Communicator**, int ranks, UniqueId, int rank, Config*)) \
  ENTRY(Code, ncclCommGetAsyncError, (Communicator*, Code*))                                    \
  ENTRY(Code, ncclCommAbort, (Communicator*))                                                   \
  ENTRY(Code, ncclGroupStart, ())                                                               \
  ENTRY(Code, ncclGroupEnd, ())                                                                 \
  ENTRY(Code, ncclSend,                                                                         \
        (const void* from, std::size_t count, DataType, int to, Communicator*, void* stream))   \
  ENTRY(Code, ncclRecv,                                                                         \
        (void* to, std::size_t count, DataType, int from, Communicator*, void* stream))         \
  ENTRY(Code, ncclBroadcast,                                                                    \
        (const void* from, void* to, std::size_t count, DataType, int root, Communicator*,      \
         void* stream))

struct Api {
#define TROUPE_NCCL_POINTER(result, name, arguments) result(*name) arguments = nullptr;
  TROUPE_NCCL_ENTRIES(TROUPE_NCCL_POINTER)
#undef TROUPE_NCCL_POINTER
};

}  // namespace troupe::collective::nccl
