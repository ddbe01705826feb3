// Of two libraries for GPUs next to the program, the one that fits the driver is opened. Both are
// the emulated device, and the driver is one that only says its version.
#include "tests/integration/processes.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

class GpuLibraries : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(scratch_ / "bin");
    fs::create_directories(scratch_ / "lib");
    fs::copy_file(troupe_program(), scratch_ / "bin/troupe");  // no link: its folder is what counts
  }

  void put(const std::string& name) {
    fs::create_symlink(fs::path(troupe_program()).parent_path() / "bin/libtroupe_cuda_emulated.so",
                       scratch_ / "lib" / name);
  }

  Ended doctor(int driver) {
    const std::string variables =
        "TROUPE_TEST_DRIVER=" + std::to_string(driver) +
        " TROUPE_CUDA_EMULATOR_MEMORY=67108864 LD_LIBRARY_PATH=" + TROUPE_TEST_DRIVER_FOLDER;
    Background shell({"/bin/sh", "-c",
                      "unset TROUPE_CUDA_LIBRARY; exec env " + variables + " " +
                          (scratch_ / "bin/troupe").string() + " doctor --gpus --json"},
                     scratch_ / "log");
    const auto status = shell.wait(60);
    return {status.value_or(-1), shell.text()};
  }

  void expect_opened(int driver, const std::string& name) {
    const Ended ended = doctor(driver);
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_NE(ended.text.find("\"library\":\"" + (scratch_ / "lib" / name).string() + "\""),
              std::string::npos)
        << driver << "\n"
        << ended.text;
  }

  void expect_none(int driver, const std::vector<std::string>& parts) {
    const Ended ended = doctor(driver);
    EXPECT_EQ(ended.status, 3) << ended.text;
    for (const std::string& part : parts)
      EXPECT_NE(ended.text.find(part), std::string::npos) << part << "\n" << ended.text;
  }

  ScratchFolder scratch_;
};

TEST_F(GpuLibraries, TheOneThatFitsTheDriverIsOpened) {
  expect_none(13000, {"neither libtroupe_cuda.so nor libtroupe_cuda12.so is next to the program"});
  put("libtroupe_cuda.so");
  expect_none(12040, {"the driver is too old: it has CUDA 12.4", "libtroupe_cuda12.so (not there)",
                      "525 or newer", "580 or newer", "packages made with --cuda=12 have it"});
  put("libtroupe_cuda12.so");
  expect_opened(13000, "libtroupe_cuda.so");
  expect_opened(12000, "libtroupe_cuda12.so");
  expect_none(11080, {"the driver is too old: it has CUDA 11.8"});
}

}  // namespace
}  // namespace troupe::test
