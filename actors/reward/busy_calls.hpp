// Shows a role as busy while at least one of its calls is under way. On the role's strand.
#pragma once

#include "runtime/core/activity.hpp"

#include <cstddef>

namespace troupe::actors::reward {

class BusyCalls {
 public:
  class Guard {
   public:
    Guard(BusyCalls& calls, core::Activity* activity) : calls_(calls), activity_(activity) {
      if (calls_.open_++ == 0 && activity_ != nullptr) activity_->set_busy("score");
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
      if (--calls_.open_ == 0 && activity_ != nullptr) activity_->set_idle("nothing asked");
    }

   private:
    BusyCalls& calls_;
    core::Activity* const activity_;
  };

 private:
  std::size_t open_ = 0;
};

}  // namespace troupe::actors::reward
