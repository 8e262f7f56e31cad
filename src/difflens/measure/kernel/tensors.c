/* One look at tensors in memory: at addresses of a table, or at those of a framework's own objects.

   A step of a small model takes less than a millisecond, and what was not used during it has left
   the processor's caches: each function of Python costs more there than its work. So the questions
   about the tensors of a step are asked here, in one call. */
#include "module.h"

#include <string.h>

/* One tensor to read: addresses, because tensors of a training step change place every step and
   a buffer for each would cost more than the reading itself. */
struct tensor {
    int64_t bytes, copy, count, type;
};

int difflens_start_tensors(struct module_state *state)
{
    static const char *const words[QUESTIONS] = {
        [GRAD] = "grad", [DTYPE] = "dtype", [IS_CPU] = "is_cpu",
        [IS_CONTIGUOUS] = "is_contiguous", [NUMEL] = "numel", [DATA_PTR] = "data_ptr", [VERSION] = "_version",
    };
    for (int i = 0; i < QUESTIONS; i++)
        if (!(state->questions[i] = PyUnicode_InternFromString(words[i]))) return -1;
    return 0;
}

/* Read all tensors of a table; 0 with an error set where it cannot be one. */
static int look_at(const struct loops *loops, const Py_buffer *table, const Py_buffer *out)
{
    static const enum dtype types[] = {F64, F32, F16, BF16};
    Py_ssize_t n = table->len / (Py_ssize_t)sizeof(struct tensor);
    int good = table->len % (Py_ssize_t)sizeof(struct tensor) == 0
               && out->len == n * (Py_ssize_t)sizeof(struct look);
    int64_t total = 0;
    for (Py_ssize_t i = 0; good && i < n; i++) {
        struct tensor each;
        memcpy(&each, (const char *)table->buf + i * (Py_ssize_t)sizeof each, sizeof each);
        good = each.count >= 0 && each.type >= 0 && each.type < 4 && (each.bytes || !each.count);
        total += each.count / 2; /* halves, so that no sum of counts overflows */
    }
    if (!good) {
        PyErr_Format(PyExc_ValueError, "a table of %zd bytes and %zd for the answer do not fit",
                     table->len, out->len);
        return 0;
    }
    /* Letting go of the interpreter costs up to 5 ms where another thread takes it: not worth
       it for what is read in a tenth of one. */
    PyThreadState *threads = total > 1 << 19 ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        struct tensor each;
        struct look look = {0};
        memcpy(&each, (const char *)table->buf + i * (Py_ssize_t)sizeof each, sizeof each);
        if (each.count)
            loops->read(types[each.type], (const uint8_t *)(intptr_t)each.bytes,
                        (uint8_t *)(intptr_t)each.copy, (size_t)each.count, &look);
        memcpy((char *)out->buf + i * (Py_ssize_t)sizeof look, &look, sizeof look);
    }
    if (threads) PyEval_RestoreThread(threads);
    return 1;
}

PyObject *difflens_read(PyObject *module, PyObject *args)
{
    const struct module_state *state = PyModule_GetState(module);
    Py_buffer table, out;
    if (!PyArg_ParseTuple(args, "y*w*", &table, &out)) return NULL;
    int good = look_at(state->loops, &table, &out);
    PyBuffer_Release(&table);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* The three below give 1 for yes, 0 for no, and -1 with an error set. */

static int is(PyObject *tensor, PyObject *question, const PyObject *wanted)
{
    PyObject *answer = PyObject_GetAttr(tensor, question);
    Py_XDECREF(answer); /* what it is compared with lives on */
    return answer ? answer == wanted : -1;
}

static int number_of(PyObject *tensor, PyObject *question, int64_t *out)
{
    PyObject *answer = PyObject_CallMethodObjArgs(tensor, question, NULL);
    if (!answer) return -1;
    *out = (int64_t)PyLong_AsUnsignedLongLongMask(answer);
    Py_DECREF(answer);
    return PyErr_Occurred() ? -1 : 1;
}

/* Is it of this dtype and size, in memory, without gaps? Its address goes into the table. */
static int is_usual(const struct module_state *state, PyObject *tensor, const PyObject *dtype,
                    struct tensor *out)
{
    int64_t count = -1;
    int yes = tensor != Py_None;
    if (yes == 1) yes = is(tensor, state->questions[DTYPE], dtype);
    if (yes == 1) yes = is(tensor, state->questions[IS_CPU], Py_True);
    if (yes == 1) {
        PyObject *answer =
            PyObject_CallMethodObjArgs(tensor, state->questions[IS_CONTIGUOUS], NULL);
        yes = answer ? answer == Py_True : -1;
        Py_XDECREF(answer);
    }
    if (yes == 1) yes = number_of(tensor, state->questions[NUMEL], &count);
    if (yes == 1) yes = count == out->count;
    return yes == 1 ? number_of(tensor, state->questions[DATA_PTR], &out->bytes) : yes;
}

/* Are there as many parameters as the table and the list beside it have? */
static Py_ssize_t fitting(PyObject *parameters, Py_ssize_t beside, const Py_buffer *table)
{
    Py_ssize_t n = PyList_Size(parameters);
    if (n >= 0 && (beside != n || table->len != n * (Py_ssize_t)sizeof(struct tensor))) {
        PyErr_Format(PyExc_ValueError, "%zd tensors, a table of %zd bytes and %zd more do not fit",
                     n, table->len, beside);
        return -1;
    }
    return n;
}

PyObject *difflens_read_gradients(PyObject *module, PyObject *args)
{
    const struct module_state *state = PyModule_GetState(module);
    PyObject *parameters, *dtypes, *kept = NULL;
    Py_buffer table, out;
    if (!PyArg_ParseTuple(args, "O!O!w*w*", &PyList_Type, &parameters, &PyList_Type, &dtypes,
                          &table, &out))
        return NULL;
    Py_ssize_t n = fitting(parameters, PyList_Size(dtypes), &table);
    /* What is read lives until it is: another thread may clear the gradients meanwhile. */
    int yes = n >= 0 && (kept = PyList_New(n)) ? 1 : -1;
    for (Py_ssize_t i = 0; yes == 1 && i < n; i++) {
        PyObject *parameter = PyList_GetItem(parameters, i), *dtype = PyList_GetItem(dtypes, i);
        PyObject *gradient =
            parameter && dtype ? PyObject_GetAttr(parameter, state->questions[GRAD]) : NULL;
        struct tensor each;
        char *row = (char *)table.buf + i * (Py_ssize_t)sizeof each;
        memcpy(&each, row, sizeof each);
        yes = gradient ? is_usual(state, gradient, dtype, &each) : -1;
        memcpy(row, &each, sizeof each);
        if (gradient) PyList_SetItem(kept, i, gradient);
    }
    if (yes < 0 && n >= 0 && kept
        && (PyErr_ExceptionMatches(PyExc_RuntimeError) || PyErr_ExceptionMatches(PyExc_TypeError))) {
        PyErr_Clear(); /* one without an address, such as a sparse one */
        yes = 0;
    }
    if (yes == 1 && !look_at(state->loops, &table, &out)) yes = -1;
    Py_XDECREF(kept);
    PyBuffer_Release(&table);
    PyBuffer_Release(&out);
    return yes < 0 ? NULL : PyBool_FromLong(yes);
}

/* Compare the counters of tensors with those kept, or keep them. */
static int versions(const struct module_state *state, PyObject *parameters, Py_buffer *kept,
                    int keeping)
{
    Py_ssize_t n = PyList_Size(parameters);
    int same = n >= 0 && kept->len == n * 8;
    for (Py_ssize_t i = 0; same && i < n; i++) {
        PyObject *parameter = PyList_GetItem(parameters, i);
        PyObject *answer = parameter ? PyObject_GetAttr(parameter, state->questions[VERSION]) : NULL;
        if (!answer) return -1;
        int64_t now = PyLong_AsLongLong(answer), then;
        Py_DECREF(answer);
        if (now == -1 && PyErr_Occurred()) return -1;
        memcpy(&then, (const char *)kept->buf + i * 8, 8);
        if (keeping) memcpy((char *)kept->buf + i * 8, &now, 8);
        else same = now == then;
    }
    return same;
}

PyObject *difflens_read_weights(PyObject *module, PyObject *args)
{
    const struct module_state *state = PyModule_GetState(module);
    PyObject *parameters;
    Py_buffer kept, table, out;
    if (!PyArg_ParseTuple(args, "O!w*y*w*", &PyList_Type, &parameters, &kept, &table, &out))
        return NULL;
    Py_ssize_t n = fitting(parameters, kept.len / 8, &table);
    int yes = n < 0 ? -1 : 1;
    for (Py_ssize_t i = 0; yes == 1 && i < n; i++) {
        PyObject *parameter = PyList_GetItem(parameters, i);
        int64_t address, known;
        memcpy(&known, (const char *)table.buf + i * (Py_ssize_t)sizeof(struct tensor), sizeof known);
        yes = parameter ? number_of(parameter, state->questions[DATA_PTR], &address) : -1;
        if (yes == 1) yes = address == known;
    }
    if (yes == 1 && !look_at(state->loops, &table, &out)) yes = -1;
    if (yes == 1) yes = versions(state, parameters, &kept, 1);
    PyBuffer_Release(&kept);
    PyBuffer_Release(&table);
    PyBuffer_Release(&out);
    return yes < 0 ? NULL : PyBool_FromLong(yes);
}

PyObject *difflens_are_as_read(PyObject *module, PyObject *args)
{
    PyObject *parameters;
    Py_buffer kept;
    if (!PyArg_ParseTuple(args, "O!y*", &PyList_Type, &parameters, &kept)) return NULL;
    int same = versions(PyModule_GetState(module), parameters, &kept, 0);
    PyBuffer_Release(&kept);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

PyObject *difflens_bytes_of(PyObject *module, PyObject *args)
{
    PyObject *tensor, *dtype;
    Py_ssize_t count, size;
    if (!PyArg_ParseTuple(args, "OOnn", &tensor, &dtype, &count, &size)) return NULL;
    struct tensor each = {.count = count};
    int yes = is_usual(PyModule_GetState(module), tensor, dtype, &each);
    if (yes < 0) return NULL;
    if (!yes || size < 0 || (size && !each.bytes)) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)(intptr_t)each.bytes, size);
}
