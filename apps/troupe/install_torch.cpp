#include "apps/troupe/install_torch.hpp"

#include "apps/cli/system_facts.hpp"
#include "apps/hub/consent.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/core/split.hpp"
#include "runtime/learn/torch/libtorch.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;
using core::Result;

// Of torch 2.11 with the CUDA runtime, as PyPI has them.
constexpr const char* kDownload = "0.55 GB";
constexpr const char* kKept = "0.6 GB";
constexpr std::uint64_t kNeeded_bytes = std::uint64_t{5} << 29;  // 2.5 GiB while it is unpacked

constexpr const char* kOwnTorch =
    "or set TROUPE_TORCH to the folder `torch` of a PyTorch that is installed";

// pip must do what is asked of it here, whatever the user's own settings are; mirrors and proxies
// stay.
std::vector<std::string> environment_of_pip(const fs::path& scratch) {
  std::vector<std::string> all = core::merged_environment({"TMPDIR=" + scratch.string()});
  std::erase_if(all, [](const std::string& one) {
    for (const char* name : {"PYTHONHOME=", "PYTHONPATH=", "PIP_REQUIRE_VIRTUALENV=", "PIP_USER=",
                             "PIP_TARGET=", "PIP_PREFIX="})
      if (one.starts_with(name)) return true;
    return false;
  });
  return all;
}

// What it prints goes to standard error.
Result<void> run_to_end(std::vector<std::string> words,
                        const fs::path& scratch,
                        const std::string& failure,
                        const std::string& advice) {
  core::ChildSpec spec;
  spec.words = std::move(words);
  spec.environment = environment_of_pip(scratch);
  spec.descriptors = {{STDERR_FILENO, STDOUT_FILENO}};
  TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("pip", std::move(spec)));
  const int status = child.wait();
  if (status == 0) return {};
  return fail(ErrorCode::kResources, failure + ": it " + core::how_it_ended(status), advice);
}

Result<void> ask(const fs::path& target) {
  if (hub::said_yes()) return {};
  if (!hub::can_ask()) {
    return fail(ErrorCode::kConfig,
                "doctor --install-torch asks first, and nobody is there to answer",
                "give --yes, too");
  }
  if (hub::ask("Go on?")) return {};
  return fail(ErrorCode::kInterrupted, "nothing was installed in " + target.string());
}

// Removes what training does not open: the Python half of PyTorch, its headers, its kernels for
// GPUs.
void keep_what_training_opens(const fs::path& packages) {
  const fs::path torch = packages / "torch";
  std::vector<fs::path> unused;
  for (const auto& entry : fs::directory_iterator(torch)) {
    const std::string name = entry.path().filename().string();
    if (name != "lib" && name != "version.py") unused.push_back(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(torch / "lib")) {
    const std::string name = entry.path().filename().string();
    for (const char* part : {"cuda", "nvrtc", "nvshmem", "python", "libshm"}) {
      if (name.find(part) == name.npos) continue;
      unused.push_back(entry.path());
      break;
    }
  }
  for (const char* name : {"functorch", "torchgen", "bin"})
    unused.push_back(packages / name);
  for (const fs::path& path : unused) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

Result<void> install_into(const fs::path& target) {
  TROUPE_TRY_ASSIGN(folder, store::AtomicFolder::begin(target));
  const fs::path scratch = folder.path() / ".scratch";
  const fs::path python = scratch / "venv/bin/python3";
  TROUPE_TRY(store::make_folder(scratch));
  TROUPE_TRY(run_to_end({"python3", "-m", "venv", (scratch / "venv").string()}, scratch,
                        "`python3 -m venv` failed",
                        std::string("install Python with venv (on Debian: `apt-get install "
                                    "python3-venv`), ") +
                            kOwnTorch));
  std::vector<std::string> words = {python.string(),
                                    "-m",
                                    "pip",
                                    "install",
                                    "--no-deps",
                                    "--no-compile",
                                    "--no-cache-dir",
                                    "--disable-pip-version-check",
                                    "--progress-bar",
                                    ::isatty(STDERR_FILENO) == 1 ? "on" : "off",
                                    "--target",
                                    folder.path().string()};
  for (const std::string_view package : core::split(learn::kTorchPackages, " "))
    words.emplace_back(package);
  TROUPE_TRY(run_to_end(
      std::move(words), scratch, "pip could not install " + std::string(learn::kTorchPackages),
      std::string("its own words are above; PIP_INDEX_URL names a mirror; ") + kOwnTorch));
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  if (!fs::exists(folder.path() / "torch/lib" / learn::kTorchFile, ignored)) {
    return fail(ErrorCode::kResources,
                std::string("what pip installed has no torch/lib/") + learn::kTorchFile, kOwnTorch);
  }
  keep_what_training_opens(folder.path());
  // Another process may have made it meanwhile: either is good.
  return folder.commit(store::AtomicFolder::Existing::kReplace);
}

}  // namespace

Result<void> install_torch() {
  if (const auto found = learn::find_libtorch()) {
    std::printf("training finds LibTorch %s in %s; nothing is installed\n", found->version.c_str(),
                found->folder.c_str());
    return {};
  }
  if (const char* const named = std::getenv("TROUPE_TORCH"); named != nullptr && *named != '\0') {
    return fail(
        ErrorCode::kConfig,
        std::string("TROUPE_TORCH is ") + named + ", and no other LibTorch counts beside it",
        "unset TROUPE_TORCH, then install one");
  }
  const fs::path target = learn::private_torch();
  if (target.empty()) {
    return fail(ErrorCode::kConfig, "neither TROUPE_HOME nor HOME says where to install LibTorch",
                "set TROUPE_HOME to a folder");
  }
  std::fprintf(stderr,
               "pip downloads %s (about %s) from its package index.\n"
               "%s will take about %s; training alone uses it.\n",
               learn::kTorchPackages, kDownload, target.c_str(), kKept);
  TROUPE_TRY(ask(target));
  TROUPE_TRY(store::make_folder(target.parent_path()));
  if (const auto disk = cli::disk_facts(target.parent_path()); disk.free_bytes < kNeeded_bytes) {
    return fail(ErrorCode::kResources,
                target.parent_path().string() + " has " + cli::bytes_text(disk.free_bytes) +
                    " free; unpacking LibTorch takes " + cli::bytes_text(kNeeded_bytes),
                "TROUPE_HOME names a folder on another disk");
  }
  TROUPE_TRY(install_into(target));
  TROUPE_TRY_ASSIGN(found, learn::find_libtorch());
  std::printf("LibTorch %s is in %s; `rm -r %s` removes it\n", found.version.c_str(),
              found.folder.c_str(), core::shell_word(target.string()).c_str());
  return {};
}

}  // namespace troupe::app
