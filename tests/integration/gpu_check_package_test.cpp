// The folder that `./dev package gpu-check` packs: small, and running beside a LibTorch that is
// named to it, with nothing of the build folder; what is missing is said by name.
#include "runtime/core/shell_word.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

struct Output {
  int status = -1;
  std::string text;
};

Output shell(const std::string& command) {
  Output output;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  char piece[4096];
  for (std::size_t n = 0; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;)
    output.text.append(piece, n);
  const int status = ::pclose(pipe);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

std::string word(const fs::path& path) {
  return core::shell_word(path.string());
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

class GpuCheckPackage : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("troupe_gpu_check_" + std::to_string(::getpid()));
    packed_ = shell(
        "python3 -B " + core::shell_word(variable("TROUPE_SOURCE_DIR") + "/apps/package/main.py") +
        " gpu-check " + core::shell_word(variable("TROUPE_BUILD_DIR")) + " " + word(folder_));
    for (const auto& entry :
         fs::recursive_directory_iterator(variable("TROUPE_SOURCE_DIR") + "/.venv/build/lib/"))
      if (entry.path().filename() == "libtorch_cpu.so")
        torch_ = entry.path().parent_path().parent_path().string();
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }
  // The launcher in an environment of its own.
  static Output run(const std::string& words) {
    return shell("env -i PATH=/usr/bin:/bin " + word(folder_ / "troupe") + " " + words);
  }

  static inline fs::path folder_;
  static inline Output packed_;
  static inline std::string torch_;
};

}  // namespace

TEST_F(GpuCheckPackage, RunsBesideANamedLibTorch) {
  ASSERT_EQ(packed_.status, 0) << packed_.text;
  EXPECT_NE(packed_.text.find(" MiB"), std::string::npos);
  ASSERT_FALSE(torch_.empty());
  const Output doctor = run("--torch " + word(torch_) + " doctor");
  EXPECT_EQ(doctor.status, 0) << doctor.text;
  EXPECT_NE(doctor.text.find(" in " + torch_ + "/lib, for training alone"), std::string::npos)
      << doctor.text;
  // Its own libraries, not the build's or the system's, without the launcher too: CAF is one of
  // them, and libkj one that another of them needs.
  const Output libraries = shell("env -i PATH=/usr/bin:/bin ldd " + word(folder_ / "bin/troupe"));
  for (const char* name : {"libcaf_core", "libkj"}) {
    EXPECT_NE(libraries.text.find(folder_.string() + "/bin/../lib/" + name), std::string::npos)
        << libraries.text;
  }
  EXPECT_EQ(libraries.text.find("not found"), std::string::npos) << libraries.text;
}

TEST_F(GpuCheckPackage, NeedsNoLibTorchUnlessItTrains) {
  ASSERT_EQ(packed_.status, 0) << packed_.text;
  const Output version = run("version");
  EXPECT_EQ(version.status, 0) << version.text;
  EXPECT_EQ(version.text.rfind("troupe ", 0), 0u) << version.text;
}

TEST_F(GpuCheckPackage, SaysWhichTorchIsMissing) {
  ASSERT_EQ(packed_.status, 0) << packed_.text;
  Output wrong = run("--torch /nowhere version");
  EXPECT_EQ(wrong.status, 3);
  EXPECT_NE(wrong.text.find("/nowhere has no lib/libtorch_cpu.so"), std::string::npos)
      << wrong.text;
  fs::create_directories(folder_ / "other/lib");
  std::ofstream(folder_ / "other/lib/libtorch_cpu.so");
  std::ofstream(folder_ / "other/build-version") << "2.7.1+cpu\n";
  wrong = run("--torch " + word(folder_ / "other") + " version");
  EXPECT_EQ(wrong.status, 3);
  EXPECT_NE(wrong.text.find("is LibTorch 2.7.1+cpu; this build needs 2.11"), std::string::npos)
      << wrong.text;
}

TEST_F(GpuCheckPackage, TheCheckOfGpusSaysWhatIsMissingAndGoesOn) {
  ASSERT_EQ(packed_.status, 0) << packed_.text;
  const Output check =
      shell("cd " + word(folder_) +
            " && env -i PATH=/usr/bin:/bin ./gpu-check --stages 1,0 --torch " + word(torch_));
  EXPECT_EQ(check.status, 1) << check.text;
  EXPECT_NE(check.text.find("1 gpus: failed error: no GPU"), std::string::npos) << check.text;
  EXPECT_NE(check.text.find("1 test_kernels_cuda.(none): failed"), std::string::npos) << check.text;
  EXPECT_NE(check.text.find("0 version: passed"), std::string::npos) << check.text;
  EXPECT_TRUE(fs::exists(folder_ / "gpu_check/lines.jsonl"));
}

}  // namespace troupe::test
