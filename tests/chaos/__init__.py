"""The chaos proof: real Lanes, a real Postgres and a small internet that misbehaves, all struck at random; then calm, then judgement.

`python -m tests.chaos --minutes 10 --series 2000 --hosts 200 --seed 7` by hand; a minute of it is in `make test`.

- `events`: what befell whom and when, and every move of the clock
- `world`: the hosts, what they publish, and what they told us to wait
- `weather`: how a host misbehaves
- `crew`: the processes, killed, ended, suspended and started again
- `storm`: all of these at once, for some time
- `calm`: everything is healed, and time leaps until every Series was read again
- `seen`: the origin's record and the poll record, laid side by side
- `origin`: was any host asked too soon, by its own record
- `books`: stored once, owed once, nothing left over, by the rows
- `proof`: one run from start to verdict, and its figures
"""
