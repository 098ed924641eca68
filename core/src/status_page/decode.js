'use strict';
// Takes an id apart as snowflake_decode does, and a UUID of version 7 that was made as ids are, without a server.
(() => {
  const $ = (id) => document.getElementById(id);
  const ones = (bits) => (1n << bits) - 1n;

  const layoutOf = ({ dataset }) => {
    const [ticks, datacenter, worker, rollback, sequence] = dataset.widths.split(' ').map(BigInt);
    const node = datacenter + worker + rollback;
    const last = dataset.order === 'last';
    return {
      ticks, datacenter, worker, rollback, sequence, node,
      unit: BigInt(dataset.unit), epoch: BigInt(dataset.epoch),
      nodeShift: last ? sequence : 0n, sequenceShift: last ? 0n : node, tickShift: node + sequence,
    };
  };

  // An instant, in microseconds since 1970.
  const instant = (micros) => {
    // From the year 10000 on the year will do.
    if (micros >= 253402300800000000n) return `about the year ${1970n + micros / 31556952000000n}`;
    return new Date(Number(micros / 1000n)).toISOString().replace('Z', String(micros % 1000n).padStart(3, '0') + 'Z');
  };

  const decode = (id, of) => {
    if (id < 0n) throw new Error('An id is not negative.');
    if (id > ones(of.ticks + of.tickShift)) throw new Error('The id has more bits than the layout.');
    const node = id >> of.nodeShift;
    return {
      id,
      timestamp: instant(of.epoch + (id >> of.tickShift) * of.unit),
      datacenter_id: (node >> (of.worker + of.rollback)) & ones(of.datacenter),
      worker_id: (node >> of.rollback) & ones(of.worker),
      rollback: node & ones(of.rollback),
      sequence: (id >> of.sequenceShift) & ones(of.sequence),
    };
  };

  const idOf = (uuid, of) => {
    const foreign = new Error('The UUID was not made with this layout.');
    if ((uuid >> 76n & 15n) !== 7n || (uuid >> 62n & 3n) !== 2n) throw new Error('The UUID is not of version 7.');
    const millis = uuid >> 80n;
    const payload = (uuid >> 64n & ones(12n)) << 62n | uuid & ones(62n);
    // The largest number of a tick in its millisecond.
    const last = 999n / of.unit;
    const named = payload >> (74n - (last ? BigInt(last.toString(2).length) : 0n) - of.sequence - of.node);
    const counter = named >> of.node;
    const begins = millis * 1000n;
    const first = begins <= of.epoch ? 0n : (begins - of.epoch + of.unit - 1n) / of.unit;
    const tick = first + (counter >> of.sequence);
    if (tick > ones(of.ticks) || (of.epoch + tick * of.unit) / 1000n !== millis) throw foreign;
    const sequence = counter & ones(of.sequence);
    return tick << of.tickShift | sequence << of.sequenceShift | (named & ones(of.node)) << of.nodeShift;
  };

  const read = (text, of) => {
    const uuid = /^\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$/i.exec(text);
    if (uuid) return idOf(BigInt('0x' + uuid.slice(1).join('')), of);
    if (/^-?[0-9]{1,19}$/.test(text)) return BigInt(text);
    throw new Error('This is neither an id, a number of up to 19 digits, nor a UUID.');
  };

  const show = (parts) => {
    const list = document.createElement('dl');
    list.className = 'facts';
    for (const [name, value] of Object.entries(parts)) {
      const row = document.createElement('div');
      for (const [element, text] of [['dt', name], ['dd', String(value)]]) {
        row.appendChild(document.createElement(element)).textContent = text;
      }
      list.appendChild(row);
    }
    $('parts').replaceChildren(list);
  };

  const refuse = (message) => {
    const line = document.createElement('p');
    line.textContent = message;
    $('parts').replaceChildren(line);
  };

  const run = () => {
    const text = $('id').value.trim();
    if (!text) return refuse('Enter an id.');
    try {
      const of = layoutOf($('layout').selectedOptions[0]);
      return show(decode(read(text, of), of));
    } catch (error) {
      return refuse(error.message);
    }
  };

  $('form').addEventListener('submit', (event) => {
    event.preventDefault();
    run();
  });
  $('layout').addEventListener('change', () => {
    if ($('id').value.trim()) run();
  });
})();
