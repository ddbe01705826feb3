// The reference level: plain loops over single numbers that define every result.
#define TROUPE_KERNEL_LEVEL reference

#include "kernels/reference/activations.hpp"
#include "kernels/reference/attention.hpp"
#include "kernels/reference/attention_backward.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/mix_rows.hpp"
#include "kernels/reference/optimizer.hpp"
#include "kernels/reference/rows.hpp"
#include "kernels/reference/rows_backward.hpp"
#include "kernels/reference/vocab.hpp"
// Must come after the functions that it lists.
#include "kernels/table.hpp"
