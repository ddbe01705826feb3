// Names of devices, and what exceptions of a device mean.
#include "runtime/core/device_name.hpp"

#include "runtime/core/memory.hpp"
#include "runtime/core/thrown.hpp"

#include <gtest/gtest.h>

#include <new>

namespace troupe::core {
namespace {

TEST(DeviceName, NamesOfTheCpuAndOfGpus) {
  EXPECT_EQ(*parse_device("cpu"), (DeviceName{false, 0}));
  EXPECT_EQ(*parse_device("cuda"), (DeviceName{true, 0}));
  EXPECT_EQ(*parse_device("cuda:0"), *parse_device("cuda"));
  EXPECT_EQ(*parse_device("cuda:12"), (DeviceName{true, 12}));
  EXPECT_EQ(parse_device("cuda")->text(), "cuda:0");
  EXPECT_EQ(parse_device("cpu")->text(), "cpu");
}

TEST(DeviceName, RefusesWhatIsNone) {
  for (const char* name : {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:1 ", "cuda:1x", "cuda:1000",
                           "cuda:+1", "cpu:0"}) {
    const auto parsed = parse_device(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, ErrorCode::kConfig);
    EXPECT_NE(parsed.error().message.find("cpu, cuda or cuda:N"), std::string::npos);
  }
}

TEST(Thrown, AMissingResourceIsNoBug) {
  const Error memory = error_of(OutOfMemory("device cuda:0 has 1.00 GiB free"));
  EXPECT_EQ(memory.code, ErrorCode::kResources);
  EXPECT_NE(memory.message.find("1.00 GiB free"), std::string::npos);
  EXPECT_NE(memory.message.find("rollout.kv_cache_gb"), std::string::npos);
  EXPECT_NE(memory.message.find("train.micro_tokens_max"), std::string::npos);
  EXPECT_EQ(error_of(DeviceError("launch")).code, ErrorCode::kResources);
  EXPECT_EQ(error_of(std::bad_alloc()).code, ErrorCode::kResources);
  EXPECT_EQ(error_of(std::runtime_error("x")).code, ErrorCode::kInternal);
  EXPECT_EQ(error_of(std::runtime_error("x")).message, "x");
  EXPECT_EQ(error_of(std::runtime_error("x"), "a step").message, "a step: x");
}

}  // namespace
}  // namespace troupe::core
