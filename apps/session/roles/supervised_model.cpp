#include "apps/session/roles/supervised_model.hpp"

#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/step_marks.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/packed.hpp"

namespace troupe::session {
core::Result<std::unique_ptr<model::ParamStore>> supervised_params(
    const config::TrainConfig& config, const model::ElementsToRead& read) {
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
  TROUPE_TRY_ASSIGN(
      params, model::load_elements(folder,
                                   supervised_method(config).scores ? model::HeadKind::kScore
                                                                    : model::HeadKind::kLanguage,
                                   seed_of(config), read));
  if (supervised_method(config).steps()) {
    params->set_config_json(
        model::with_process_reward(params->spec().config_json, process_reward(config)));
  }
  return params;
}

core::Result<std::unique_ptr<learn::SupervisedTrainer>> make_supervised(
    const config::TrainConfig& config,
    std::uint64_t steps,
    std::unique_ptr<model::ParamStore> params,
    core::TeamRunner& team,
    learn::Ranks ranks) {
  learn::SupervisedSettings settings = supervised_settings(config, steps);
  settings.optim.ranks = ranks;
  if (settings.loss.method->steps()) {
    TROUPE_TRY_ASSIGN(folder, trained_folder(config));
    TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
    TROUPE_TRY_ASSIGN(marks, step_marks(config, tokenizer));
    settings.loss.reward_tokens = marks.reward_ids;
  }
  std::shared_ptr<const model::PackedWeights> reference;
  if (settings.loss.method->reference && !config.ref.model_name_or_path.empty()) {
    TROUPE_TRY_SET(reference, reference_weights(config, team));
  }
  for (const TeacherPart& part : teacher_parts(config)) {
    TROUPE_TRY_ASSIGN(teacher, teacher_weights(config, part.folder, team));
    settings.teachers.push_back(std::move(teacher));
  }
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  return trainers->supervised(std::move(params), std::move(reference), settings, team);
}

}  // namespace troupe::session
