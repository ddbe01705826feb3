// Which library for GPUs is taken, for every driver and every set of libraries that may be there.
#include "kernels/cuda/library_choice.hpp"

#include <gmock/gmock.h>

#include <set>

namespace troupe::kernels::cuda {
namespace {

using testing::HasSubstr;

const std::string k13 = "libtroupe_cuda.so", k12 = "libtroupe_cuda12.so";

LibraryChoice choose(int driver, const std::set<std::string>& there) {
  return choose_library(driver, [&there](const std::string& name) {
    return there.contains(name) ? std::filesystem::path("/lib") / name : std::filesystem::path();
  });
}

TEST(LibraryChoice, TheNewestThatTheDriverOpens) {
  const std::set<std::string> both{k13, k12};
  EXPECT_EQ(choose(13000, both).path, "/lib/" + k13);
  EXPECT_EQ(choose(14010, both).path, "/lib/" + k13);
  EXPECT_EQ(choose(12090, both).path, "/lib/" + k12);
  EXPECT_EQ(choose(12000, both).path, "/lib/" + k12);
  EXPECT_EQ(choose(13020, {k12}).path, "/lib/" + k12);
  // Without a driver the library says that it is missing.
  EXPECT_EQ(choose(0, both).path, "/lib/" + k13);
  EXPECT_EQ(choose(0, {k12}).path, "/lib/" + k12);
}

TEST(LibraryChoice, AnErrorNamesTheDriverAndBoth) {
  for (const auto& [driver, there] :
       {std::pair{12040, std::set{k13}}, {11080, std::set{k13, k12}}, {11080, std::set{k12}}}) {
    const LibraryChoice none = choose(driver, there);
    EXPECT_TRUE(none.path.empty());
    EXPECT_THAT(none.error, HasSubstr(driver == 12040 ? "it has CUDA 12.4" : "it has CUDA 11.8"));
    EXPECT_THAT(none.error, HasSubstr(" needs driver 580 or newer (CUDA 13.0)"));
    EXPECT_THAT(none.error, HasSubstr(" needs driver 525 or newer (CUDA 12.0)"));
  }
  EXPECT_EQ(choose(12040, {k13}).error,
            "the driver is too old: it has CUDA 12.4; libtroupe_cuda.so needs driver 580 or newer "
            "(CUDA 13.0), libtroupe_cuda12.so (not there) needs driver 525 or newer (CUDA 12.0); "
            "`./dev build --cuda=12` makes it");
  for (const int driver : {0, 12040, 13000}) {
    const std::string error = choose(driver, {}).error;
    for (const char* part : {"neither libtroupe_cuda.so nor libtroupe_cuda12.so", "580", "525",
                             "`./dev build --cuda=both` makes it", "TROUPE_CUDA_LIBRARY"})
      EXPECT_THAT(error, HasSubstr(part));
  }
}

TEST(LibraryChoice, TheDriverThatALibraryNeeds) {
  EXPECT_EQ(driver_for("/a/" + k13), "580 or newer");
  EXPECT_EQ(driver_for("/a/" + k12), "525 or newer");
  EXPECT_EQ(driver_for("/a/libmine.so"), "580 or newer");
}

}  // namespace
}  // namespace troupe::kernels::cuda
