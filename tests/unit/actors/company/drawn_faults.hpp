// Faults that a seed draws, for a company of which all must be well again afterwards.
#pragma once

#include "tests/unit/actors/company/company_stage.hpp"

#include <string>
#include <vector>

namespace troupe::actors::testing {

// `count` faults of these nodes and roles, each some time after the one before.
inline void draw_faults(CompanyStage& stage,
                        int count,
                        const std::vector<std::string>& nodes,
                        const std::vector<std::string>& roles) {
  const auto one_of = [&stage](const std::vector<std::string>& names) {
    return names[stage.rng().next_below(names.size())];
  };
  const auto a_while = [&stage] { return milliseconds(stage.rng().next_below(4000)); };
  while (count-- > 0) {
    stage.run_for(a_while());
    const std::string node = one_of(nodes);
    switch (stage.rng().next_below(6)) {
      case 0:
        stage.crash(node);
        break;
      case 1:
        stage.freeze(node);
        stage.run_for(a_while());
        stage.thaw(node);
        break;
      case 2:
        stage.cut(node);
        stage.run_for(a_while());
        stage.heal();
        break;
      case 3:
        stage.crash_role(one_of(roles));
        break;
      case 4:
        stage.freeze(node);  // for good
        break;
      default:
        stage.crash(node);
        stage.crash(one_of(nodes));
    }
  }
}

}  // namespace troupe::actors::testing
