// That nccl_api.hpp says what NCCL's own header says, and that the pinned library is one that we
// take. Both come with the `cuda` environment.
#include "runtime/collective/nccl_library.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#ifdef TROUPE_PINNED_NCCL
#include <nccl.h>

#include <type_traits>

namespace troupe::collective::test {
namespace {

using nccl::Code;
using nccl::Config;

static_assert(static_cast<int>(Code::kSuccess) == ncclSuccess);
static_assert(static_cast<int>(Code::kUnhandledCudaError) == ncclUnhandledCudaError);
static_assert(static_cast<int>(Code::kSystemError) == ncclSystemError);
static_assert(static_cast<int>(Code::kInternalError) == ncclInternalError);
static_assert(static_cast<int>(Code::kInvalidArgument) == ncclInvalidArgument);
static_assert(static_cast<int>(Code::kInvalidUsage) == ncclInvalidUsage);
static_assert(static_cast<int>(Code::kRemoteError) == ncclRemoteError);
static_assert(static_cast<int>(Code::kInProgress) == ncclInProgress);
static_assert(static_cast<int>(nccl::DataType::kInt8) == ncclInt8);
static_assert(static_cast<int>(nccl::DataType::kUint8) == ncclUint8);
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(Code) == sizeof(ncclResult_t));
static_assert(sizeof(nccl::DataType) == sizeof(ncclDataType_t));

// Our configuration is the beginning of theirs.
#define TROUPE_SAME_PLACE(ours, theirs)                                    \
  static_assert(offsetof(Config, ours) == offsetof(ncclConfig_t, theirs)); \
  static_assert(sizeof(Config::ours) == sizeof(ncclConfig_t::theirs))
TROUPE_SAME_PLACE(size, size);
TROUPE_SAME_PLACE(magic, magic);
TROUPE_SAME_PLACE(version, version);
TROUPE_SAME_PLACE(blocking, blocking);
TROUPE_SAME_PLACE(cga_cluster_size, cgaClusterSize);
TROUPE_SAME_PLACE(ctas_min, minCTAs);
TROUPE_SAME_PLACE(ctas_max, maxCTAs);
TROUPE_SAME_PLACE(net_name, netName);
TROUPE_SAME_PLACE(split_share, splitShare);
TROUPE_SAME_PLACE(unused, trafficClass);

// Our type for one of theirs.
template <class T>
struct Ours {
  using Type = T;
};
template <>
struct Ours<ncclResult_t> {
  using Type = Code;
};
template <>
struct Ours<ncclDataType_t> {
  using Type = nccl::DataType;
};
template <>
struct Ours<ncclUniqueId> {
  using Type = nccl::UniqueId;
};
template <>
struct Ours<ncclComm> {
  using Type = nccl::Communicator;
};
template <>
struct Ours<ncclConfig_t> {
  using Type = Config;
};
template <>
struct Ours<CUstream_st> {
  using Type = void;
};
template <class T>
struct Ours<T*> {
  using Type = typename Ours<T>::Type*;
};
template <class Result, class... Arguments>
struct Ours<Result(Arguments...)> {
  using Type = typename Ours<Result>::Type(typename Ours<Arguments>::Type...);
};

#define TROUPE_SAME_TYPE(result, name, arguments) \
  static_assert(std::is_same_v<decltype(nccl::Api::name), Ours<decltype(::name)>::Type*>, #name);
TROUPE_NCCL_ENTRIES(TROUPE_SAME_TYPE)

TEST(NcclApi, TheConfigurationIsTheirs) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.cga_cluster_size, theirs.cgaClusterSize);
  EXPECT_EQ(ours.ctas_min, theirs.minCTAs);
  EXPECT_EQ(ours.ctas_max, theirs.maxCTAs);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
  EXPECT_EQ(ours.unused, theirs.trafficClass);
  EXPECT_EQ(static_cast<unsigned>(NCCL_VERSION(2, 17, 0)), ours.version);
}

TEST(NcclApi, ThePinnedLibraryHasEveryEntryPoint) {
  ::setenv("TROUPE_NCCL_LIBRARY", TROUPE_PINNED_NCCL, 1);
  const auto library = open_nccl({});
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ(library->version, NCCL_VERSION_CODE);
  EXPECT_STREQ(library->api.ncclGetErrorString(Code::kRemoteError),
               "remote process exited or there was a network error");
}

}  // namespace
}  // namespace troupe::collective::test
#else
TEST(NcclApi, IsComparedWhereThePinnedHeaderIs) {
  GTEST_SKIP() << "no .venv/cuda; `./dev build --cuda` makes it";
}
#endif
