"""Search for better schedules, guided by prices of KV memory.

For prices `lambda_t >= 0` of a token of KV in step `t`, let `c_i(p)` be what request
`i` costs if it starts in step `p`: its completion, and its KV at these prices. With
`w_t` the KV held in step `t`,

    TEL + sum of a  =  sum_i c_i(p_i) - sum_t lambda_t w_t
                    =  [sum_i min_p c_i(p) - M sum_t lambda_t]
                       + sum_i [c_i(p_i) - min_p c_i(p)] + sum_t lambda_t (M - w_t).

The first bracket is a lower bound that does not depend on the schedule (the dual bound
of `lp.prices`). So a schedule's excess over it is a sum of terms local in time:
requests that start in a step other than their cheapest, and free memory. At the prices
of the fluid relaxation nearly all of the excess is free memory, and partial schedules
can be compared by their excess so far. The beam search does so
(`sortedf.improve.beam`).

Memory stays free because running requests grow until the next completion. Evenly spaced
completions need the least reserve, so the search prefers requests whose completion
falls into a wide gap between others (`_evenness`).
"""

from sortedf.improve.improving import Improvement, improve
from sortedf.improve.objective import Objective

__all__ = ["Improvement", "Objective", "improve"]
