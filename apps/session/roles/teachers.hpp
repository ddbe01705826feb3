// The teachers of a run: which roles they are, the checks of their folders, and their weights. In
// `train ppo` each is a role, which gives log-probs of sampled tokens as a reference does; in
// `train distill` all are in the trainer's process. Used by runs in one process and by node
// processes alike. Stateless.
#pragma once

#include "actors/reference/teacher_server.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/domains.hpp"
#include "runtime/model/packed.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::session {

struct TeacherPart {
  std::string role;    // "teacher/0", "teacher/1"
  std::string folder;  // as configured; "" for a server
  std::string url;     // of a server; "" for a folder
  std::string domain;  // taught by it; "" when it is the only teacher

  // As messages call it: "the teacher", "the teacher of math".
  std::string name() const;
};

// Folders first, then servers. Empty when the run has no teacher.
std::vector<TeacherPart> teacher_parts(const config::TrainConfig& config);
inline bool has_teacher(const config::TrainConfig& config) {
  return !teacher_parts(config).empty();
}

// Which of them a row has.
data::Domains domains_of(const config::TrainConfig& config);

// Checks the folders and URLs before any role starts. Errors, kConfig and kNotFound: another
// vocabulary or other tokens than the trained model's, a context too short for the policy's
// sequences, a URL that is none.
core::Result<void> check_teachers(const config::TrainConfig& config);

// The shortest context of the teachers' folders and `own`.
core::Result<std::int64_t> taught_context(const config::TrainConfig& config, std::int64_t own);

// How servers show the tokens of the policy's vocabulary; null when its folder has no tokenizer.
core::Result<actors::reference::TokenSpelling> token_spelling(const config::TrainConfig& config);

// The weights of a teacher's folder, in the memory of the team.
core::Result<std::shared_ptr<const model::PackedWeights>> teacher_weights(
    const config::TrainConfig& config, const std::string& folder, core::TeamRunner& team);

}  // namespace troupe::session
