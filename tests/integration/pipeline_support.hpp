// A pipeline on a tiny model: its file, its call, and what it left.
#pragma once

#include "processes.hpp"

namespace troupe::test {

class TinyPipeline {
 public:
  TinyPipeline() {
    write("pairs.jsonl",
          "{\"prompt\": \"1+1=\", \"chosen\": \"b\", \"rejected\": \"fish\"}\n"
          "{\"prompt\": \"1+2=\", \"chosen\": \"c\", \"rejected\": \"no\"}\n");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(files_ / name, std::ios::binary) << text;
  }
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  const std::string& model() const { return files_.model(); }

  // `troupe pipeline FILE` into the folder `out`; FILE is p.yaml here, or one of configs/pipelines.
  std::vector<std::string> words(const std::string& file,
                                 std::vector<std::string> more = {},
                                 const std::string& folder = "out") const {
    const bool own = file == "p.yaml";
    std::vector<std::string> out = {
        "pipeline",
        own ? path(file)
            : (std::filesystem::path(TROUPE_RECIPES_DIR) / "pipelines" / file).string(),
        "--folder", path(folder)};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  Ended run(const std::vector<std::string>& more = {}, const std::string& folder = "out") const {
    return troupe_ends(words("p.yaml", more, folder), files_ / "log.txt", 120);
  }

  nlohmann::json record(const std::string& stage, const std::string& folder = "out") const {
    return nlohmann::json::parse(text_of(files_ / folder / stage / "stage.json"), nullptr, false);
  }
  nlohmann::json summary(const std::string& folder = "out") const {
    return nlohmann::json::parse(text_of(files_ / folder / "pipeline.json"), nullptr, false);
  }
  // The bytes of the weights that a training stage ends with.
  std::string weights(const std::string& stage, const std::string& folder = "out") const {
    std::string newest;
    std::error_code error;
    const auto checkpoints = files_ / folder / stage / "run/ckpt";
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints, error)) {
      const auto model = entry.path() / "model/model.safetensors";
      if (std::filesystem::exists(model)) newest = std::max(newest, model.string());
    }
    return newest.empty() ? "" : text_of(newest);
  }
  std::filesystem::path operator/(const std::string& name) const { return files_ / name; }

 private:
  TinyRun files_;
};

// The only child of a process; 0 while there is none.
inline pid_t child_of(pid_t parent) {
  std::ifstream in("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                   "/children");
  pid_t child = 0;
  in >> child;
  return child;
}

}  // namespace troupe::test
