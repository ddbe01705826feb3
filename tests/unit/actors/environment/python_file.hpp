// A Python file with an environment, and the stage that plays it.
#pragma once

#include "actors/environment/python_environment.hpp"
#include "tests/unit/actors/environment/environment_stage.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::environment {

constexpr const char* kEnvironmentHead = R"(
import asyncio, os, signal, sys, time
here = os.path.dirname(os.path.abspath(__file__))
def note(name):
    with open(os.path.join(here, name), 'a') as file: file.write(f'{os.getpid()}\n')
def die():
    os.kill(os.getpid(), signal.SIGKILL)
)";

class PythonEnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "python_env_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override {
    stage_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path write(const std::string& code) {
    std::ofstream(folder_ / "tools.py") << kEnvironmentHead << code;
    return folder_ / "tools.py";
  }
  EnvironmentStage& stage(const std::string& code, std::size_t workers = 1) {
    auto made =
        make_python_environment({.python = write(code), .workers = workers, .say = said_.hook()});
    EXPECT_TRUE(made) << made.error().message;
    stage_.emplace(made ? std::move(*made) : nullptr);
    return *stage_;
  }
  std::string refusal(const std::string& code) {
    const auto made = make_python_environment({.python = write(code)});
    EXPECT_FALSE(made);
    if (made) return "";
    EXPECT_EQ(made.error().code, core::ErrorCode::kConfig);
    return made.error().message;
  }
  std::size_t notes(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);)
      ++count;
    return count;
  }

  std::filesystem::path folder_;
  SaidLines said_;
  std::optional<EnvironmentStage> stage_;
};

inline std::vector<EpisodeStart> starts(std::size_t count) {
  std::vector<EpisodeStart> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i].prompt = std::to_string(i);
  return all;
}

inline std::vector<EnvironmentStage::Held*> pointers(
    std::vector<EnvironmentStage::Opened>& opened) {
  std::vector<EnvironmentStage::Held*> all;
  for (auto& one : opened) {
    EXPECT_TRUE(one) << one.error().message;
    if (one) all.push_back(&*one);
  }
  return all;
}

inline std::string call_of(const std::string& name, const std::string& arguments) {
  const nlohmann::json function = {{"name", name}, {"arguments", arguments}};
  const nlohmann::json call = {{"id", "call_1"}, {"type", "function"}, {"function", function}};
  return nlohmann::json{{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}}.dump();
}

}  // namespace troupe::actors::environment
