// LibTorch is loaded by the processes that train and by no other; a program that was copied says
// what it misses, with exit code 3, and does all other work without it.
#include "runtime/learn/torch/libtorch.hpp"
#include "tests/integration/company_support.hpp"
#include "tests/integration/processes.hpp"

#include <sys/stat.h>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

bool maps_libtorch(pid_t pid) {
  const std::string maps = text_of("/proc/" + std::to_string(pid) + "/maps");
  EXPECT_NE(maps.find("/troupe"), std::string::npos) << "no process to look at";
  return maps.find("libtorch_cpu.so") != std::string::npos;
}

// The program alone in a folder that anybody may enter.
class CopiedProgram : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(scratch_ / "bin");
    for (const fs::path& folder : {scratch_ / "", scratch_ / "bin"})
      ::chmod(folder.c_str(), 0755);
    fs::copy_file(troupe_program(), program());  // no link: its folder is what counts
  }

  fs::path program() const { return scratch_ / "bin/troupe"; }

  void put_library(const std::string& name = "libtroupe_learn.so") {
    fs::copy_file(fs::path(troupe_program()).parent_path() / "libtroupe_learn.so",
                  scratch_ / "bin" / name);
  }

  // Nothing that can be loaded, of that version; how TROUPE_TORCH names it.
  std::string torch_of(const std::string& version) {
    const fs::path root = scratch_ / version;
    fs::create_directories(root / "lib");
    std::ofstream(root / "lib/libtorch_cpu.so") << "no library";
    std::ofstream(root / "build-version") << version << "\n";
    return "TROUPE_TORCH=" + shell_word(root.string());
  }

  // `VARIABLES program WORDS`, in a shell.
  Ended run(const std::string& before, const std::string& words) {
    Background shell({"/bin/sh", "-c", before + " " + shell_word(program().string()) + " " + words},
                     scratch_ / "log");
    const auto status = shell.wait(60);
    return {status.value_or(-1), shell.text()};
  }

  void expect(const Ended& ended, int status, const std::vector<std::string>& parts) {
    EXPECT_EQ(ended.status, status) << ended.text;
    for (const std::string& part : parts)
      EXPECT_NE(ended.text.find(part), std::string::npos) << part << "\n" << ended.text;
  }

  // Refused before the model is looked for, let alone written anything.
  std::string train(const std::string& method = "ppo") const {
    const std::string data = method == "ppo" ? "--data.prompt_dataset" : "--data.dataset";
    return "train " + method + " --actor.model_name_or_path /nowhere " + data +
           " /nowhere --run.path " + shell_word((scratch_ / "run").string()) +
           (method == "ppo" ? " --reward.rule exact --data.label_key answer" : "");
  }

  ScratchFolder scratch_;
};

}  // namespace

TEST(LibTorch, OnlyThePolicyAndTheCriticOfACompanyLoadIt) {
  const TinyRun files;
  CompanyRun run(files, "run",
                 {"--algo.advantage.estimator", "gae", "--train.max_steps", "100000",
                  "--ckpt.save_steps", "0"});
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  const auto nodes = run.nodes();
  std::set<std::string> with, without;
  for (const auto& [name, pid] : nodes)
    (maps_libtorch(pid) ? with : without).insert(name);
  EXPECT_EQ(with, (std::set<std::string>{"critic", "policy"}));
  EXPECT_EQ(without, (std::set<std::string>{"generator-0", "reference", "reward"}));
  EXPECT_FALSE(maps_libtorch(run.pid())) << "the head";
  const Ended status =
      troupe_ends({"status", "--join", run.folder().string()}, files / "status", 60);
  EXPECT_EQ(status.status, 0) << status.text;
}

TEST_F(CopiedProgram, WorksWithoutItsLibraryUnlessItTrains) {
  expect(run("", "version"), 0, {"troupe "});
  expect(run("", "help"), 0, {"usage: troupe COMMAND"});
  expect(run("", "status --join /nowhere"), 2, {"neither HOST:PORT nor the folder"});
  expect(run("", "ca init --out " + shell_word((scratch_ / "ca").string())), 0, {});
  expect(run("", "config show --algo.objective gspo"), 0, {"objective: \"gspo\""});
  const std::string model = make_tiny_model(scratch_);
  write_byte_tokenizer(model);
  expect(run("", "generate --model " + shell_word(model) + " --prompt a --max-new-tokens 2"), 0,
         {});
  const std::string missing = "libtroupe_learn.so, which is neither in " +
                              (scratch_ / "bin").string() + " nor in " +
                              (scratch_ / "lib").string();
  expect(run("", "doctor"), 0, {"libtorch    none: training needs " + missing});
  for (const char* method : {"ppo", "sft"})
    expect(run("", train(method)), 3, {"error: training needs " + missing, "hint: copy it there"});
  expect(run("", "node --join 127.0.0.1:9 --roles generator,critic"), 3, {missing});
  EXPECT_FALSE(fs::exists(scratch_ / "run"));
}

TEST_F(CopiedProgram, SaysWhereItLookedForLibTorch) {
  put_library();
  const std::string other = (scratch_ / "other").string();
  expect(run("TROUPE_TORCH=" + shell_word(other), train()), 3,
         {"there is none (" + other + "/lib/libtorch_cpu.so: No such file or directory)",
          "hint: set TROUPE_TORCH"});
  fs::create_directories(scratch_ / "other/lib");
  std::ofstream(scratch_ / "other/lib/libtorch_cpu.so") << "no library";
  std::ofstream(scratch_ / "other/build-version") << "2.7.1+cpu\n";
  expect(run("TROUPE_TORCH=" + shell_word(other), train()), 3, {other + " is LibTorch 2.7.1+cpu"});
  // Without its measurements the program says so.
  expect(run("", "bench gemm"), 2, {"there is no troupe-bench in", "hint: copy it"});
  fs::copy_file(fs::path(troupe_program()).parent_path() / "troupe-bench",
                scratch_ / "bin/troupe-bench");
  // Found by its name and version, and still none: what the loader says, no crash.
  fs::remove(scratch_ / "other/build-version");
  const std::string model = make_tiny_model(scratch_);
  write_byte_tokenizer(model);
  expect(run("TROUPE_TORCH=" + shell_word(other),
             "bench train --objective sft --model " + shell_word(model)),
         3, {"LibTorch cannot be loaded", "libtorch_cpu.so: file too short"});
  // One that another user may not read.
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  ::chmod(other.c_str(), 0700);
  const std::string user = " setpriv --reuid 65534 --regid 65534 --clear-groups";
  expect(run("TROUPE_TORCH=" + shell_word(other) + user, "doctor --run-path /"), 0,
         {"libtorch    none", other + "/lib/libtorch_cpu.so: Permission denied"});
}

// Of two libraries for two versions of LibTorch, the one that fits that which is there.
TEST_F(CopiedProgram, HasALibraryForEachOfTwoVersions) {
  const auto& [usual, newest] = learn::kLearnLibraries;
  const std::string first(usual.torch), second(newest.torch);
  put_library(newest.file);
  expect(run(torch_of(second + ".0"), "doctor"), 0, {"libtorch    " + second + ".0 in "});
  expect(run(torch_of(first + ".0"), train()), 3,
         {"is LibTorch " + first + ".0, this build needs " + second});
  put_library(usual.file);
  for (const std::string& version : {first + ".1", second + ".0+cu132"})
    expect(run(torch_of(version), "doctor"), 0, {"libtorch    " + version + " in "});
  // A longer number is another version.
  expect(run(torch_of(first + "1.0"), train()), 3,
         {"is LibTorch " + first + "1.0, this build needs " + first + " or " + second,
          "hint: set TROUPE_TORCH to the folder of a LibTorch " + first + " or " + second});
  // What is found says which library is looked at.
  std::ofstream(scratch_ / "bin" / newest.file) << "of another build";
  expect(run(torch_of(second + ".1"), train()), 3,
         {std::string(newest.file) + " is of another build than this program"});
  expect(run(torch_of(first + ".2"), "doctor"), 0, {"libtorch    " + first + ".2 in "});
}

TEST_F(CopiedProgram, InstallsNoTorchThatWouldNotBeUsed) {
  put_library();
  expect(run("", "doctor --install-torch"), 0,
         {"training finds LibTorch 2", "nothing is installed"});
  expect(run("", "doctor --install-torch --no"), 2,
         {"unknown flag '--no'", "hint: there is --yes"});
  expect(run("TROUPE_TORCH=/nowhere", "doctor --install-torch --yes"), 2,
         {"TROUPE_TORCH is /nowhere", "hint: unset TROUPE_TORCH"});
}

TEST_F(CopiedProgram, RefusesALibraryOfAnotherBuild) {
  put_library();
  const Ended fits = run("", "doctor");
  expect(fits, 0, {"for training alone"});
  std::string bytes = text_of(scratch_ / "bin/libtroupe_learn.so");
  const auto id = bytes.find("troupe-learn-build:");
  ASSERT_NE(id, std::string::npos);
  char& digit = bytes[id + 30];
  digit = digit == '0' ? '1' : '0';
  std::ofstream(scratch_ / "bin/libtroupe_learn.so", std::ios::binary) << bytes;
  expect(run("", train()), 3, {"libtroupe_learn.so is of another build than this program"});
}

}  // namespace troupe::test
