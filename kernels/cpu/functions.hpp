// All functions of a vector level, and its table. The source that includes this has defined the
// level's vector types and tile sizes before.
#pragma once

#include "kernels/cpu/activations.hpp"
#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_backward.hpp"
#include "kernels/cpu/gemm_entry.hpp"
#include "kernels/cpu/mix_rows.hpp"
#include "kernels/cpu/optimizer.hpp"
#include "kernels/cpu/pack_weights.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/vocab.hpp"
// After the functions that it gathers.
#include "kernels/table.hpp"
