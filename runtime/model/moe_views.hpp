// The tensors of a model as a folder holds them, where that may differ from the layout: the experts
// of a layer one by one, or all in two fused tensors (transformers 5 in memory). Pure; any thread.
#pragma once

#include "runtime/model/params.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::model {

// The views to read from a folder in which `stored(name)` tells what is there: those of `layout` (a
// whole model's), with each layer's experts fused where the folder has them fused.
std::vector<ParamView> stored_views(const ModelSpec& spec,
                                    const ParamLayout& layout,
                                    const std::function<bool(const std::string&)>& stored);

}  // namespace troupe::model
