#include "apps/troupe/asked_method.hpp"

#include "apps/session/roles/run_settings.hpp"
#include "runtime/core/edit_distance.hpp"

#include <string_view>
#include <vector>

namespace troupe::app {

Result<Asked> asked_for(const std::string& word) {
  if (const auto method = config::method_named(word); method != config::kNoMethod)
    return Asked{method, {}};
  std::vector<std::string_view> names(std::begin(config::kMethodNames),
                                      std::end(config::kMethodNames));
  for (const core::Choice& choice : session::run_table().find("algo.advantage.estimator")->words) {
    if (word == choice.name || (!choice.alias.empty() && word == choice.alias))
      return Asked{config::kPpo, std::string(choice.name)};
    names.push_back(choice.name);
    if (!choice.alias.empty()) names.push_back(choice.alias);
  }
  const std::string near(core::nearest_word(word, names));
  return fail(ErrorCode::kConfig, "there is no method '" + word + "' to begin with",
              near.empty() ? "choose one of " + config::method_names(config::kAllMethods)
                           : "did you mean `troupe init " + near + "`?");
}

}  // namespace troupe::app
