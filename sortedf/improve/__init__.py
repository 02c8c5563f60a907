"""Search for better schedules, guided by prices of KV memory.

For prices `lambda_t >= 0` of a token of KV in step `t`, let `c_i(p)` be what request
`i` costs if it starts in step `p`: its completion, and its KV at these prices. With
`w_t` the KV held in step `t`,

    TEL + sum of a  =  sum_i c_i(p_i) - sum_t lambda_t w_t
                    =  [sum_i min_p c_i(p) - M sum_t lambda_t]
                       + sum_i [c_i(p_i) - min_p c_i(p)] + sum_t lambda_t (M - w_t).

The first bracket is a lower bound that no schedule can change (the dual bound of
`lp.prices`). So everything that a schedule loses against it is local in time: requests
that start when prices say they should not, and memory that nobody holds. At the prices
of the fluid relaxation nearly all of the loss is memory, and half schedules can be
compared long before they are complete: by what they have lost so far. That is what the
beam search does (`sortedf.improve.beam`).

What makes memory stay free is that it has to be kept for the growth of what runs until
the next completion. Evenly spaced completions need least, so the search prefers
requests whose completion falls into a wide gap between others (`_evenness`).
"""

from sortedf.improve.improving import Improvement, improve
from sortedf.improve.objective import Objective

__all__ = ["Improvement", "Objective", "improve"]
