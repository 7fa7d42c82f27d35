"""The limits of the service and of the command, which are not settings.

A docstring is the limit and its reason and, after the arrow, what happens beyond it. ``make generate`` writes the table
in ``docs/operations/limits.md`` from them. A name ends in the unit, ``_BYTES`` or ``_SECONDS``; other limits
count things. Limits of the API server on single fields are not here but with the types of these fields.
"""

KIB = 1024
MIB = 1024 * KIB

# Requests.

MAX_REVIEW_BYTES = 7 * MIB
"""Body of an admission review: two objects of the API server's 3 MiB, and the review around them. → 413"""
MAX_ANSWER_BYTES = 4 * MIB
"""Answer of a hook. Metacontroller has no limit for answers. → 413"""
MAX_UID_CHARACTERS = 256
"""Characters of the uid of a review, which the answer repeats. → 400"""
BUILT_BYTES = 32 * KIB
"""Spec and annotations of a review whose children are not built: without templates they are at most twice as large. →
they are built, and the object is refused for one that cannot be stored"""
BODY_BUDGET_BYTES = 32 * MIB
"""All bodies above 32 KiB that are being read or worked on, and all answers that are not sent yet. Four times
`MODELHOOKS_MAX_SYNC_BYTES` if that is more. → the slowest clients lose their requests, then the address that holds the
most loses those that nothing works on yet; then 429 with `Retry-After`"""
SMALL_BODY_BYTES = 32 * KIB
"""Body that does not count towards the budget of bodies: 8 MiB for as many as there may be connections. → it counts"""
LARGE_BODY_BYTES = MIB
"""Body that may use all of the budget of bodies. Larger ones may use three quarters of it. → 429 with `Retry-After`, if
the three quarters are used"""
INLINE_BYTES = 128 * KIB
"""Body that is answered on the event loop, where that takes a millisecond or two and a thread would cost more. → a
thread answers"""
MAX_IN_FLIGHT = 512
"""Requests in progress. → 429 with `Retry-After`"""
TURN_SECONDS = 0.005
"""Time for answers in one turn of the event loop. → other requests wait, while connections are accepted and probes
answered"""
SLOW_SECONDS = 0.025
"""CPU time of an answer on the event loop. → for ten times as long, threads answer its line: the reviews, conversions
or hooks of one address"""
STUCK_SECONDS = 10.0
"""Time of a thread for one request: twenty times what the costliest may take. → `/healthz` is 503"""
STALLED_SECONDS = 5.0
"""Time between two turns of the event loop. → `/healthz` is 503"""

# Connections.

MAX_CONNECTIONS = 256
"""Connections. Each may take 370 KiB, with TLS and the beginning of a body: together 95 MiB of the 256 that a pod has.
Thirty workers of Metacontroller for each of eight controllers, spread over two pods, keep 120 open. → the address with
the most connections loses one to each new one: first those without a request, then idle ones, then those whose request
is incomplete or whose answer is not read; those of the last second that had no answer yet come last. A new one of that
address itself waits while requests of all others wait for their answers, each of which then ends its connection"""
MAX_WAITING_CONNECTIONS = 1024
"""Connections that wait to be opened. → the address with the most loses its last one"""
RESERVED_FILES = 32
"""Open files that are not connections, of those that the system allows. The process raises its limit where it may. →
fewer connections are open, and fewer wait"""
MAX_ACCEPTED = 16
"""Connections opened in one turn of the event loop, so a crowd delays open connections by one batch at a time. → the
others wait for the next turn"""
NEWCOMER_SECONDS = 0.5
"""Age of a connection without an answer that gives way in a crowd to other addresses only, after all others of its own.
→ it is closed like any other"""
MAX_PIPELINED = 1
"""Requests on one connection that wait for the answer to an earlier one. API servers and Metacontroller send none. →
the connection ends"""
MAX_HEAD_BYTES = 32 * KIB
"""Head of a request, and all that is neither head nor body: chunk sizes, their extensions, trailers. The latter may
also have as many bytes as the body, so that small chunks pass. → 431, or 414 for the path alone"""
WRITE_BUFFER_BYTES = 16 * KIB
"""Part of an answer in the write buffer of a connection. TLS adds the 64 KiB of its socket. → the rest waits in the
budget of bodies"""
HANDSHAKE_SECONDS = 5.0
"""Time for a TLS handshake. → the connection ends"""
HEAD_SECONDS = 5.0
"""Time from the connection, or from the first byte of a request, to the end of its head. → 408, and the connection
ends"""
BODY_SECONDS = 10.0
"""Time from the same moment to the end of the body. → 408, and the connection ends"""
WRITE_SECONDS = 10.0
"""Time for a client to read an answer. → the connection ends"""
LINGER_SECONDS = 1.0
"""Time for reading the rest of a refused body, which is discarded. A connection closed over unread bytes is reset, and
its client would not learn the reason. → the connection ends"""
KEEP_ALIVE_SECONDS = 120
"""Time between two requests: longer than the 90 s after which API servers and Metacontroller drop idle connections. →
the connection ends"""
QUIET_WITHIN_SECONDS = 5.0
"""Time after the lame-duck time in which a stopping process waits for a second without requests. → it stops"""
MAX_PEM_BYTES = 256 * KIB
"""Certificate or key file. A certificate with its chain has some 10 KiB. → not used; the old one stays"""
MAX_QUEUED_LINES = 10_000
"""Lines of the log that are not written yet. → dropped, and counted in a metric"""
MAX_LINES_PER_SECOND = 200
"""Lines of the log in a second. More of them repeat each other. Unlimited with `debug`. → dropped, and counted in a
metric"""

# Objects.

MAX_DEPTH = 64
"""Levels of nesting of a spec: far above any real manifest, far below what JSON encoders refuse. → denied at the
field"""
MAX_SPEC_BYTES = 192 * KIB
"""A spec. Metacontroller's record of a child has to fit into annotations of 256 KiB; a quarter of that is for what is
added to the spec. → denied at the innermost field that is too large"""
MAX_SPEC_VALUES = 25_000
"""Values in a spec: far above any real manifest. → denied at the innermost field that has too many"""
MAX_STRING_BYTES = 128 * KIB
"""A string in a spec: the longest argument or variable that Linux starts a process with. → denied at the field"""
MAX_STORED_BYTES = 1_572_864
"""Spec whose values are counted: etcd's limit for one object. → denied for its size alone"""
MAX_NAME_BYTES = 4 * KIB
"""JSON of a name, namespace, uid or time. Names have at most 253 characters. → denied; a hook request above 1 MiB is
answered 413"""
MAX_LABELS_BYTES = 64 * KIB
"""JSON of all labels of an object: a hundred and fifty of the longest. → denied; a hook request above 1 MiB is answered
413"""
MAX_ANNOTATIONS_BYTES = MIB
"""JSON of all annotations of an object. Kubernetes allows 256 KiB without quotes and escapes. → denied; a hook request
above 1 MiB is answered 413"""
MAX_REFERENCES_BYTES = 64 * KIB
"""JSON of all owners, and of all finalizers, of an object: some hundred. → denied; a hook request above 1 MiB is
answered 413"""

# Hooks.

LARGE_REQUEST_BYTES = MIB
"""Hook request whose objects and values are not counted: it cannot have too many. → the next three limits hold"""
MAX_CHILDREN = 1000
"""Observed children of a resource, which can all be kept in time. → 413"""
MAX_RELATED = 10_000
"""Related objects of a resource, mainly the pods of one service. → 413"""
MAX_READ_VALUES = 500_000
"""Values to read in a hook request: those of some thousand pods with their statuses. A null counts as ten; field
ownership and the specs of pods do not count. → 413"""
MAX_RECORDED_BYTES = 6 * MIB
"""Annotations of all observed children that are kept, with the quotes in them: about as many as fit into an answer. →
413"""
MAX_RECORDED_VALUES = 100_000
"""Values in these annotations: four times those of the largest spec. Each is read, checked and written again. → 413"""
MEMO_BYTES = 8 * MIB
"""Keys and values of the memo: some thousand ordinary specs. → the oldest entries are dropped"""
MAX_MEMO_ENTRY_BYTES = MEMO_BYTES // 4
"""An entry of the memo, so that it does not displace entries that are needed more often. → not stored"""
MAX_YAML_BYTES = 64 * KIB
"""YAML of a configuration in an object. A longer one would take seconds to parse. → not valid"""
CHILD_TIMEOUT_SECONDS = 60.0
"""Time until a requested child exists. → reported as an error in the status"""
HEARTBEAT_TIMEOUT_SECONDS = 180.0
"""Time between two heartbeats of LLMKube's metal agent, which sends one every 30 s. → the agent counts as gone"""

# Conversion reviews.

MAX_CONVERTED_OBJECTS = 10_000
"""Objects of a ConversionReview. Clients of the API server list some hundred at once. → `Failed`: list fewer objects at
once"""
MAX_CONVERTED_VALUES = 500_000
"""Values in the specs and annotations of all objects of a ConversionReview. → `Failed`: list fewer objects at once"""

# Templates of LLMInferenceServices and LLMInferenceServiceConfigs.

MAX_TEMPLATE_CHARACTERS = 64 * KIB
"""Characters of a string with actions: twenty times the length of the longest preset, and room for a chat template. →
not valid: divide it"""
MAX_ACTIONS = 256
"""Actions of one string: twenty times those of the longest preset. → not valid: divide it"""
MAX_SPEC_ACTIONS = 500
"""Actions of all strings of a spec: one for each of five hundred variables, and read in 0.06 s. → not valid: write out
values that are always the same"""
MAX_TEMPLATE_NESTING = 16
"""Levels of `if` within `if`. → not valid: join their conditions with `and`"""
MAX_TOKENS = 32
"""Words, literals, parentheses and pipes of one action, which bounds the nesting of parentheses and pipes, too. → not
valid: divide it"""
MAX_NUMBER_CHARACTERS = 20
"""Characters of a number: those of the smallest 64-bit integer, the largest that Go can read here. → not valid: a
number must fit into 64 bits"""
MAX_RENDERED_STRING_BYTES = MAX_STRING_BYTES
"""Result of one string. → not valid: print fewer or shorter fields"""
MAX_RENDERED_SPEC_BYTES = MAX_SPEC_BYTES
"""Results of all strings of a spec. → not valid: print fewer or shorter fields"""
MAX_STEPS = 50_000
"""Steps of evaluation in a spec: one for each value printed, and for each 16 bytes printed, compared or searched. Four
times what may be printed, and done in 0.06 s. → not valid: print single fields, not whole maps"""
MAX_BASES = 10
"""Configs that a service names. Real ones have up to three, and each costs a merge at every sync. → not valid: name
fewer"""
MAX_ADAPTERS = 1600
"""LoRA adapters of a service: about as many as a child can hold arguments for. → not valid: list fewer"""
MAX_COMBINED_BYTES = 2 * MAX_SPEC_BYTES
"""A service's spec and its configs. Each costs a merge, and the children could not hold much more. → not valid: refer
to fewer or smaller ones"""

# Messages.

MAX_ERRORS = 1000
"""Errors, and warnings, of one object that are searched for. → not searched for"""
MAX_SHOWN_ERRORS = 20
"""Errors of one object that are listed. → counted"""
MAX_ARGUMENTS = 1000
"""Arguments of a server that are compared with the options of its engine. → not compared"""
MAX_SHELL_CHARACTERS = 16 * KIB
"""Characters of a variable with arguments that are split into words. → not compared"""
MAX_SHELL_DEPTH = 64
"""Conditions, loops, functions and subshells of a script that are inside each other. → not compared"""
MAX_UNKNOWN_NAMES = 100
"""Unknown fields, options of engines, and names of volumes and plugins that are listed, and metrics that are compared:
each costs a search for similar names. → not listed, not compared"""
MAX_WARNINGS = 16
"""Warnings of one answer. The API server drops those over its own budget. → counted"""
MAX_WARNING_CHARACTERS = 240
"""Characters of one warning. → cut"""
MAX_VALUE_CHARACTERS = 256
"""Characters of a value in a message. → cut"""
MAX_WORD_CHARACTERS = 64
"""Characters of a word for which a similar one is searched. → not searched for"""
MAX_TEMPLATE_MESSAGE_CHARACTERS = 300
"""Characters of a message about a template, which may quote it. → cut"""
MAX_NOTED_FIELDS = 5
"""Fields that the note about a kept pod template names. → counted"""
MAX_COMPARED_BYTES = MIB
"""Specs of all children in which fields are looked for that the API server does not keep. → not looked for"""
MAX_CAUSES = 8
"""Causes of not being ready that a message lists. → counted"""
MAX_CAUSE_CHARACTERS = 600
"""Characters of one cause. → cut"""
MAX_COMMAND_CHARACTERS = 350
"""Characters of a command for several objects in a message. → the next message has the others"""
MAX_READY_CHARACTERS = 1000
"""Characters of a message that lists causes, of which the first is always there. → the others are counted"""
MAX_STEADY_PROBLEMS = 200
"""Different problems of a workload's pods from which times and ids are removed, so that equal ones become one, and
different termination messages that are searched for a cause. → quoted as they are, not searched"""
MAX_PROBLEMS = 4000
"""Problems of pods of one workload that are read: of all containers of some hundred pods. → not read"""
MAX_CONTAINERS = 100
"""Containers of a pod whose state is read. → not read"""
MAX_OUTPUT_CHARACTERS = 300
"""Characters of a container's termination message in a cause: its last line, and lines with an error. → cut"""
MAX_READ_CHARACTERS = 2 * KIB
"""Characters of a termination message that are searched for lines with an error, the cause of a failed download, or a
driver that is too old: its end. A kubelet takes as many from a log. → not read"""
MAX_QUOTE_CHARACTERS = 200
"""Characters of a container's output in a message of LLMKube, and of a list of names in any message. → cut"""
MAX_SERVICES_NAMED = 10
"""Services that the condition of an LLMInferenceServiceConfig names. → their number"""

# The command.

MAX_FILE_BYTES = 32 * MIB
"""File that a command reads. → an error"""
MAX_IGNORE_FILE_BYTES = MIB
"""`.gitignore` that a command reads. → the rest is not read"""
MAX_DOCUMENT_VALUES = 500_000
"""Values in one YAML document, of a file or of a ConfigMap. More come from aliases that refer to each other. → an
error"""
MAX_DOCUMENT_DEPTH = 200
"""Levels of nesting of a YAML document, of a file or of a ConfigMap: what the JSON library can write. → an error"""
KUBE_API_SECONDS = 30
"""Time for a request to the API server. → an error"""
